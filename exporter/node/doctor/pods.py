"""The check of pod metadata: whether what the API server knows of this node's pods can be read, where that is on."""

from collections.abc import Iterable

from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, Finding, failed, ok
from exporter.node.doctor.reasons import DoctorReason
from exporter.node.service_account.reasons import ApiReason
from exporter.source import SourceError


def _pods(examination: Examination) -> Iterable[Finding]:
    pods = examination.pods
    if pods is None:
        return []
    if isinstance(pods, SourceError):
        return [failed(ApiReason.of(pods.reason), str(pods))]
    if not pods:
        return [failed(DoctorReason.NO_POD_OF_NODE, examination.config.style.hostname)]
    asking = sum(not pod.finished and any(container.requests for container in pod.containers) for pod in pods)
    return [ok(f"{len(pods)} pods of this node are known; {asking} of them ask for GPUs")]


CHECKS = (Check("kubernetes", "pod metadata", _pods),)
