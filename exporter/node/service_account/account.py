"""Where the API server of this pod is, and which object is meant. It loads no HTTP client: most nodes need none."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes puts the token, which changes, and the authority of the API server."""


@dataclass(frozen=True, slots=True)
class ConfigMapName:
    """Which ConfigMap is meant."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"ConfigMap {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A server that takes the token of the pod's service account: the API server, or the kubelet."""

    url: str
    """`https://host:port`; empty outside a cluster."""
    folder: Path = FOLDER
    authority: Path | None = None
    """File with the authority of the server's certificate; None means that of the API server, beside the token."""
    verify: bool = True
    """Whether the server's certificate is verified."""
    peer: str = "the API server"
    """What messages call the server."""


def service_account(environment: Mapping[str, str]) -> ServiceAccount:
    """The service account of this pod, as its variables name the API server."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT") or "443"
    return ServiceAccount(f"https://{f'[{host}]' if ':' in host else host}:{port}" if host else "")
