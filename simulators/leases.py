"""Leases of a simulated API server. An update succeeds only with the version that is stored."""

import json
import threading
from typing import Any

from simulators.api_server_http import LEASES, status_object
from simulators.objects import KubernetesObject

_ANY = (json.JSONDecodeError, KeyError, TypeError, AttributeError)


class SimulatedLeases:
    """Several servers may share one, as the API servers of a cluster do. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0
        self._leases: dict[str, KubernetesObject] = {}

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, KubernetesObject]:
        """Serve a request for a lease. Returns the HTTP status and the body of the response."""
        namespace, _, name = path.removeprefix(LEASES).partition("/leases")
        try:
            if method == "GET":
                return self._get(f"{namespace}{name}")
            given = json.loads(body)
            key = f"{namespace}/{given['metadata']['name']}"
            return self._create(key, given) if method == "POST" else self._update(key, given)
        except _ANY as error:
            return 400, status_object(400, "BadRequest", repr(error))

    def edit(self, namespace: str, name: str, **spec: Any) -> None:
        """Change fields of a lease as another client would."""
        with self._lock:
            key = f"{namespace}/{name}"
            lease = self._leases.get(key, {"metadata": {"namespace": namespace, "name": name}, "spec": {}})
            self._put(key, {**lease, "spec": {**lease["spec"], **spec}})

    def delete(self, namespace: str, name: str) -> None:
        """Delete a lease. Raises KeyError when there is none."""
        with self._lock:
            del self._leases[f"{namespace}/{name}"]

    def spec(self, namespace: str, name: str) -> dict[str, Any]:
        """What a lease says; empty where there is none."""
        with self._lock:
            return dict(self._leases.get(f"{namespace}/{name}", {}).get("spec", {}))

    def _get(self, key: str) -> tuple[int, KubernetesObject]:
        with self._lock:
            found = self._leases.get(key)
        return (200, found) if found else (404, status_object(404, "NotFound", f"lease {key} not found"))

    def _create(self, key: str, given: KubernetesObject) -> tuple[int, KubernetesObject]:
        with self._lock:
            if key in self._leases:
                return 409, status_object(409, "AlreadyExists", f"lease {key} already exists")
            return 201, self._put(key, given)

    def _update(self, key: str, given: KubernetesObject) -> tuple[int, KubernetesObject]:
        with self._lock:
            before = self._leases.get(key)
            if before is None:
                return 404, status_object(404, "NotFound", f"lease {key} not found")
            if given["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]:
                return 409, status_object(409, "Conflict", f"lease {key} has been modified")
            return 200, self._put(key, given)

    def _put(self, key: str, lease: KubernetesObject) -> KubernetesObject:
        self._version += 1
        stored = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self._version)}}
        self._leases[key] = stored
        return stored
