"""The flags of the node exporter for pod metadata: what the API server knows of the pods of this node."""

import urllib.parse
from collections.abc import Callable

from exporter.config import ConfigError
from exporter.flags.flag import Flag
from exporter.flags.values import BOOLEAN, FILE, FlagValue, choice
from exporter.node.pods.name_patterns import NamePatterns, PatternError


def _patterns(check: Callable[[tuple[str, ...]], NamePatterns]) -> FlagValue:
    """Expressions separated by commas. One that cannot be used is an error: a part of a list would mean other names."""

    def read(text: str) -> tuple[str, ...]:
        texts = tuple(filter(None, (part.strip() for part in text.split(","))))
        if text.strip() and not texts:
            raise ConfigError(f"{text!r} has no expression")
        try:
            check(texts)
        except PatternError as error:
            raise ConfigError(str(error)) from None
        return texts

    return FlagValue(read, "EXPRESSIONS", adds_up=True)


def _url(text: str) -> str:
    try:
        parts = urllib.parse.urlsplit(text)
        usable = parts.scheme == "https" and bool(parts.hostname) and parts.path in ("", "/") and parts.port != 0
    except ValueError:  # the port is no number
        usable = False
    if text and not (usable and not parts.query):
        raise ConfigError(f"{text!r} is not https://HOST:PORT")
    return text.rstrip("/")


_URL = FlagValue(_url, "URL")
POD_METADATA = (
    Flag(
        "pod-metadata",
        choice("off", "api", "kubelet", optional=True),
        "where the pods of this node are read, with --kubernetes: api lists and watches them through the API server, "
        "kubelet asks the kubelet's HTTPS port every 10 s; both need a token and a role. Where it is not given: api "
        "with one of the next five flags or --audit-annotations, else off",
        variable="GPUGAUGE_POD_METADATA",
    ),
    Flag(
        "kubernetes-enable-pod-labels",
        BOOLEAN,
        "write labels of the pod that alone has a device as labels of the device's DCGM-named series",
        variable="DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS",
    ),
    Flag(
        "kubernetes-enable-pod-uid",
        BOOLEAN,
        "write its uid as the label pod_uid",
        variable="DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID",
    ),
    Flag(
        "kubernetes-pod-label-allowlist-regex",
        _patterns(NamePatterns.anywhere),
        "of these labels of a pod only those whose names an expression matches, anywhere in the name; without one, all",
        variable="DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX",
    ),
    Flag(
        "pod-labels",
        _patterns(NamePatterns.whole),
        "labels of a pod that are written: names, or expressions that match the whole of a name",
        variable="GPUGAUGE_POD_LABELS",
    ),
    Flag(
        "pod-annotations",
        _patterns(NamePatterns.whole),
        "annotations of a pod that are written as labels, in the same way",
        variable="GPUGAUGE_POD_ANNOTATIONS",
    ),
    Flag(
        "kubelet-url",
        _URL,
        "the kubelet's HTTPS port, for --pod-metadata=kubelet; without it https://NODE_IP:10250, where the variable "
        "NODE_IP has the address of the node, else its name",
        variable="GPUGAUGE_KUBELET_URL",
    ),
    Flag(
        "kubelet-ca-file",
        FILE,
        "authority of the kubelet's certificate; without it that of the API server",
        variable="GPUGAUGE_KUBELET_CA_FILE",
    ),
    Flag(
        "kubelet-insecure-tls",
        BOOLEAN,
        "do not verify the kubelet's certificate, which many kubelets sign themselves; the token is sent to it",
        variable="GPUGAUGE_KUBELET_INSECURE_TLS",
    ),
)
