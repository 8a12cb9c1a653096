"""The Lease object of coordination.k8s.io/v1: read, created and updated through the API server.

An update names the version that was read, so it fails where another replica has written meanwhile. Fields that are not
ours stay as they are.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from exporter.cluster.config import LeaseName
from exporter.cluster.kubernetes.watching.api import ApiError, KubernetesApi
from exporter.cluster.kubernetes.watching.permissions import LEASE_PARTS
from exporter.cluster.kubernetes.watching.reasons import WatchReason
from exporter.cluster.leadership.election import LEASE_SECONDS, LeaseTerm

_REQUEST_SECONDS = 5.0
"""How long a request may take to connect, and to be answered: as long as a leader has until its next renewal."""
_VERSION = f"{LEASE_PARTS[0].group}/{LEASE_PARTS[0].versions[0]}"
_CONFLICT, _NOT_FOUND = 409, 404
_UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _WireSpec(msgspec.Struct, gc=False, rename="camel"):
    leader: str | None = msgspec.field(default=None, name="holderIdentity")
    renew_time: str | None = None
    lease_transitions: int | None = None


class _WireLease(msgspec.Struct, gc=False):
    metadata: dict[str, Any]
    spec: _WireSpec | None = None


@dataclass(frozen=True, slots=True)
class StoredLease:
    """A lease as the API server has it."""

    body: dict[str, Any]
    term: LeaseTerm


def get(api: KubernetesApi, name: LeaseName) -> StoredLease | None:
    """Read the lease; None where there is none. Raises ApiError."""
    try:
        return _stored(api.send("GET", _path(name), None, _REQUEST_SECONDS))
    except ApiError as error:
        if error.status == _NOT_FOUND:
            return None
        raise


def write(
    api: KubernetesApi, name: LeaseName, lease: StoredLease | None, leader: str, now: float
) -> StoredLease | None:
    """Create the lease, or update the one that was read, with this leader; an empty one releases it.

    `now` is in seconds since the epoch. Returns None when another client has written or deleted it meanwhile. Raises
    ApiError.
    """
    method: Literal["POST", "PUT"] = "POST" if lease is None else "PUT"
    path = _collection(name) if lease is None else _path(name)
    try:
        return _stored(api.send(method, path, _body(name, lease, leader, _micro_time(now)), _REQUEST_SECONDS))
    except ApiError as error:
        if error.status == _CONFLICT or (error.status == _NOT_FOUND and lease is not None):
            return None
        raise


def _body(name: LeaseName, lease: StoredLease | None, leader: str, now: str) -> dict[str, Any]:
    spec = {"holderIdentity": leader, "leaseDurationSeconds": int(LEASE_SECONDS), "renewTime": now}
    if lease is None:
        meta = {"namespace": name.namespace, "name": name.name}
        first = {"acquireTime": now, "leaseTransitions": 0}
        return {"apiVersion": _VERSION, "kind": "Lease", "metadata": meta, "spec": spec | first}
    if leader and leader != lease.term.leader:
        spec |= {"acquireTime": now, "leaseTransitions": lease.term.transitions + 1}
    return {**lease.body, "spec": {**(lease.body.get("spec") or {}), **spec}}


def _stored(body: bytes) -> StoredLease:
    """Decode a lease. Raises ApiError when it is none."""
    try:
        decoded = msgspec.json.decode(body)
        spec = msgspec.convert(decoded, _WireLease).spec or _WireSpec()
    except _UNDECODABLE as error:
        raise ApiError(WatchReason.BAD_RESPONSE, f"a lease cannot be read: {error}") from error
    return StoredLease(decoded, LeaseTerm(spec.leader or "", spec.renew_time or "", spec.lease_transitions or 0))


def _collection(name: LeaseName) -> str:
    return f"/apis/{_VERSION}/namespaces/{name.namespace}/leases"


def _path(name: LeaseName) -> str:
    return f"{_collection(name)}/{name.name}"


def _micro_time(now: float) -> str:
    """Format a time as Kubernetes' MicroTime."""
    return datetime.fromtimestamp(now, tz=UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
