"""Checks of ResourceClaims (DRA): what the API server shows of them, where it is asked, and else what names show."""

from collections.abc import Iterator

from exporter.gpu_names import GPU_DRIVER
from exporter.node.attribution.pods.claims import claims_of
from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, Finding, failed, ok
from exporter.source import SourceError


def _claims(examination: Examination) -> Iterator[Finding]:
    """Nothing where no container has a claim and the API server is not asked."""
    kubelet = examination.kubelet
    listed = () if kubelet is None or isinstance(kubelet, SourceError) else kubelet
    claimed = [each for each in listed if each.resource == GPU_DRIVER]
    if examination.dra is None:
        if claimed:
            yield ok(f"{len(claimed)} devices of claims are told by their names; --kubernetes-enable-dra reads more")
        return
    for kind, reason, message in examination.dra.problems:
        yield failed(reason, f"{kind}: {message}")
    knowledge = examination.claims
    if not examination.dra.problems:
        read = sum(claim in (knowledge.claims or {}) for claim in claims_of(listed))
        devices = len(knowledge.devices)
        yield ok(
            f"{devices} devices are in this node's ResourceSlices; {read} of {len(claims_of(listed))} claims are read"
        )


CHECKS = (Check("kubernetes", "resource claims", _claims),)
