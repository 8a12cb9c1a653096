"""The options of pod metadata: where it is read, and what of it becomes labels. No I/O."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from exporter.config import Arguments
from exporter.node.pods.name_patterns import NamePatterns
from exporter.node.service_account.account import ServiceAccount

PodMetadataSource = Literal["off", "api", "kubelet"]
KUBELET_PORT = 10250


@dataclass(frozen=True, slots=True)
class PodOptions:
    """What is read of the pods of this node, and exposed. By default nothing."""

    source: PodMetadataSource = "off"
    labels: NamePatterns = NamePatterns()  # noqa: RUF009 - it does not change
    """The labels of pods that become labels of DCGM-named series."""
    annotations: NamePatterns = NamePatterns()  # noqa: RUF009 - likewise
    """The annotations of pods that become labels of these series too."""
    noted_annotations: frozenset[str] = frozenset()
    """The annotations that the audit log has, whether or not they become labels."""
    uid: bool = False
    """Whether these series have the label `pod_uid`."""
    kubelet: ServiceAccount = ServiceAccount("")  # noqa: RUF009 - it does not change
    """The kubelet's HTTPS port."""


_EVERY_NAME = (".",)
_ASKING = (
    "kubernetes-enable-pod-labels",
    "kubernetes-enable-pod-uid",
    "pod-labels",
    "pod-annotations",
    "audit-annotations",
)


def pod_options(arguments: Arguments, environment: Mapping[str, str]) -> PodOptions:
    """Make the options of values that were checked when they were read."""
    labels = NamePatterns.whole(arguments.pod_labels)
    if arguments.kubernetes_enable_pod_labels:
        allowed = arguments.kubernetes_pod_label_allowlist_regex or _EVERY_NAME
        labels = NamePatterns((*labels.expressions, *NamePatterns.anywhere(allowed).expressions))
    source: PodMetadataSource = arguments.pod_metadata or ("api" if _asked_for(arguments) else "off")
    return PodOptions(
        source=source if arguments.kubernetes else "off",
        labels=labels,
        annotations=NamePatterns.whole(arguments.pod_annotations),
        noted_annotations=frozenset(arguments.audit_annotations),
        uid=arguments.kubernetes_enable_pod_uid,
        kubelet=_kubelet(arguments, environment),
    )


def _kubelet(arguments: Arguments, environment: Mapping[str, str]) -> ServiceAccount:
    """The kubelet of this node, at the node's own address where NODE_IP has it."""
    host = environment.get("NODE_IP") or environment.get("NODE_NAME") or "localhost"
    return ServiceAccount(
        arguments.kubelet_url or f"https://{f'[{host}]' if ':' in host else host}:{KUBELET_PORT}",
        authority=Path(arguments.kubelet_ca_file) if arguments.kubelet_ca_file else None,
        verify=not arguments.kubelet_insecure_tls,
        peer="the kubelet",
    )


def pod_warnings(arguments: Arguments) -> Iterator[str]:
    """Messages about flags that have no effect."""
    asked = _asked_for(arguments)
    if asked and arguments.pod_metadata == "off":
        yield f"--{asked[0]} has no effect with --pod-metadata=off"
    elif (asked or arguments.pod_metadata in {"api", "kubelet"}) and not arguments.kubernetes:
        yield f"--{asked[0] if asked else 'pod-metadata'} has no effect without --kubernetes"


def _asked_for(arguments: Arguments) -> list[str]:
    """The flags that ask for something that only pod metadata has."""
    return [name for name in _ASKING if getattr(arguments, name.replace("-", "_"))]
