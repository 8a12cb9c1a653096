"""The leases of the simulated API server: an update needs the version that is stored."""

import json

from simulators.api_server_http import LEASES
from simulators.leases import SimulatedLeases

COLLECTION = f"{LEASES}team-a/leases"
LEASE = {"metadata": {"namespace": "team-a", "name": "x"}, "spec": {"holderIdentity": "a"}}


def send(leases, method, path, given=None):
    return leases.answer(method, path, b"" if given is None else json.dumps(given).encode())


def test_a_lease_is_created_once_read_and_updated_with_its_version():
    leases = SimulatedLeases()
    assert send(leases, "GET", f"{COLLECTION}/x")[0] == 404
    code, created = send(leases, "POST", COLLECTION, LEASE)
    assert (code, created["spec"]) == (201, LEASE["spec"])
    assert send(leases, "POST", COLLECTION, LEASE)[1]["reason"] == "AlreadyExists"
    assert send(leases, "GET", f"{COLLECTION}/x") == (200, created)
    code, updated = send(leases, "PUT", f"{COLLECTION}/x", {**created, "spec": {"holderIdentity": "b"}})
    assert (code, leases.spec("team-a", "x")) == (200, {"holderIdentity": "b"})
    assert send(leases, "PUT", f"{COLLECTION}/x", created)[1]["reason"] == "Conflict"
    assert send(leases, "PUT", f"{COLLECTION}/x", updated)[0] == 200


def test_a_lease_that_is_gone_cannot_be_updated():
    leases = SimulatedLeases()
    _, created = send(leases, "POST", COLLECTION, LEASE)
    leases.delete("team-a", "x")
    assert send(leases, "PUT", f"{COLLECTION}/x", created)[0] == 404
    assert leases.spec("team-a", "x") == {}


def test_what_another_client_changes_is_a_new_version():
    leases = SimulatedLeases()
    _, created = send(leases, "POST", COLLECTION, LEASE)
    leases.edit("team-a", "x", holderIdentity="")
    assert leases.spec("team-a", "x") == {"holderIdentity": ""}
    assert send(leases, "PUT", f"{COLLECTION}/x", created)[0] == 409


def test_a_body_that_is_no_lease_is_a_bad_request():
    assert SimulatedLeases().answer("POST", COLLECTION, b"{")[0] == 400
    assert send(SimulatedLeases(), "POST", COLLECTION, {"metadata": {}})[0] == 400
