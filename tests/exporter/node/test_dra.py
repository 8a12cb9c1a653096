"""GPUs of ResourceClaims, over a real kubelet socket and real HTTP: with the API server, and without."""

import json
import logging
from pathlib import Path

import pytest

from exporter import cli
from exporter.collection_loop import log_health
from exporter.log import StateLog
from exporter.node.config import node_config
from exporter.node.program import NodeProgram
from simulators.api_server_http import ApiFault
from tests.exporter.node.dra.slices import claim_object, device, request_object, slice_object
from tests.exporter.node.dra_node import (
    DRIVER,
    INFO,
    MEMORY,
    NODE,
    UTIL,
    VERSIONS,
    dra_node,
    key,
    pods,
    problems_of,
    users,
    uuid,
)

CORPUS = Path(__file__).parents[1] / "cluster" / "scheduler_corpus"
DRA = "--kubernetes-enable-dra"
MIG = "gpu-2-mig-1g10gb-19-0"


def put(node, *devices, **more):
    node.api.put("resourceslices", slice_object(*devices, **more))


def gpus(version="v1"):
    """What the driver offers: the names of the two whole GPUs are the other way round than their numbers."""
    return (
        device("first", version=version, type="gpu", uuid=uuid(1)),
        device("second", version=version, type="gpu", uuid=uuid(0)),
        device(MIG, version=version, type="mig", uuid="MIG-8-0", parentUUID=uuid(2), profile="1g.10gb"),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_devices_are_those_of_the_slices_in_every_version_of_the_api(version):
    with dra_node(DRA, version=version) as node:
        put(node, *gpus(version))
        requests = [request_object("gpu", "team-gpus"), request_object("slice", "mig.nvidia.com")]
        claim = claim_object(("gpu", "first"), ("slice", MIG), name="c", requests=requests, version=version)
        node.api.put("resourceclaims", claim)
        node.claim("train", "first@c", f"{MIG}@c")
        series = node.settled(lambda found: len(users(found)) == 2)
        assert users(series) == {(1, ""): {"train"}, (2, "8"): {"train"}}
        assert pods(series) == {(0, ""): 0, (1, ""): 1, (2, "7"): 0, (2, "8"): 1}
        resources = {key(labels): labels["resource"] for name, labels, _ in series if name == INFO}
        assert resources == {(1, ""): "team_gpus", (2, "8"): "mig_nvidia_com"}
        node.settled(lambda found: not problems_of(found))


def test_the_series_of_a_claims_device_have_dcgm_exporters_labels():
    with dra_node(DRA) as node:
        put(node, *gpus())
        node.api.put("resourceclaims", claim_object(("gpu", "first"), ("slice", MIG), name="c"))
        node.claim("train", "first@c", f"{MIG}@c")
        node.settled(lambda found: len(users(found)) == 2)
        used, idle = node.labels(UTIL)[1, ""], node.labels(UTIL)[0, ""]
        assert {name: value for name, value in used.items() if name.startswith("dra_")} == {
            "dra_claim_name": "c",
            "dra_claim_namespace": "team",
            "dra_driver_name": DRIVER,
            "dra_pool_name": NODE,
            "dra_device_name": "first",
        }
        assert (used["namespace"], used["pod"], used["container"]) == ("team", "train", "main")
        assert not [name for name in idle if name.startswith("dra_")]
        memory = node.labels(MEMORY)[2, "8"]
        assert (memory["dra_mig_profile"], memory["dra_mig_device_uuid"]) == ("1g.10gb", "MIG-8-0")


def test_without_pod_labels_there_are_none_of_claims_either():
    with dra_node(DRA, "--allocation-labels=none") as node:
        node.api.put("resourceclaims", claim_object(("gpu", "gpu-0"), name="c"))
        node.claim("train", "gpu-0@c")
        node.settled(lambda found: users(found) == {(0, ""): {"train"}})
        assert not [name for labels in node.labels(UTIL).values() for name in labels if name.startswith("dra_")]


def test_only_what_belongs_to_this_node_is_asked_for():
    with dra_node(DRA) as node:
        other = slice_object(device("gpu-0", type="gpu", uuid=uuid(1)), name="other", node="node-2", pool="node-2")
        node.api.put("resourceslices", other)
        put(node, device("gpu-0", type="gpu", uuid=uuid(0)))
        node.api.put("resourceclaims", claim_object(("gpu", "gpu-0"), name="c"))
        node.api.put("resourceclaims", claim_object(("gpu", "gpu-0"), name="of-nobody-here"))
        node.claim("train", "gpu-0@c")
        node.settled(lambda found: users(found) == {(0, ""): {"train"}})
        asked = {
            (request.path.rpartition("/v1/")[2], request.query.get("fieldSelector")) for request in node.api.requests
        }
        assert asked == {
            ("resourceslices", f"spec.nodeName={NODE},spec.driver={DRIVER}"),
            ("namespaces/team/resourceclaims/c", None),
        }


def test_a_monitoring_pod_is_no_user_whatever_its_namespace_is():
    with dra_node(DRA) as node:
        node.api.put("resourceclaims", claim_object(("all", "gpu-0", True), ("all", "gpu-1", True), name="watch"))
        node.api.put("resourceclaims", claim_object(("gpu", "gpu-1"), name="c"))
        node.claim("exporter", "gpu-0@watch", "gpu-1@watch")
        node.claim("train", "gpu-1@c")
        series = node.settled(lambda found: pods(found).get((0, "")) == 0)
        assert users(series) == {(1, ""): {"train"}}
        assert node.labels(UTIL)[1, ""]["pod"] == "train"


def test_without_the_flag_nothing_is_asked_and_names_are_enough():
    with dra_node() as node:
        node.claim("train", "gpu-1@c")
        node.claim("exporter", "gpu-0@watch", "gpu-1@watch", namespace="gpu-operator")
        series = node.exposed()
        assert (users(series), node.api.requests) == ({(1, ""): {"train"}}, ())
        assert not [name for _, labels, _ in series for name in labels if name.startswith("dra_")]


def test_a_claim_that_was_not_read_yet_costs_only_the_knowledge_of_its_device():
    with dra_node(DRA) as node:
        node.api.add_fault(ApiFault("get", "resourceclaims", times=-1, delay=float("inf")))
        node.claim("train", "gpu-1@c")
        series = node.exposed()
        assert users(series) == {}
        assert pods(series) == {(0, ""): 0, (2, "7"): 0, (2, "8"): 0}
        node.api.put("resourceclaims", claim_object(("gpu", "gpu-1"), name="c"))
        node.api.clear_faults()
        node.settled(lambda found: users(found) == {(1, ""): {"train"}})


def test_report_9_forbidden_objects_cost_only_what_they_show_and_say_so_once(caplog):
    caplog.set_level(logging.INFO)
    faults = [ApiFault("list", "resourceslices", times=-1, status=403)]
    faults += [ApiFault("get", "resourceclaims", times=-1, status=403)]
    with dra_node(DRA, faults=faults) as node:
        node.claim("d1", "gpu-0@shared", "second@shared")
        node.claim("d2", "gpu-0@shared", "second@shared")
        denied = {("resourceslices", "forbidden"), ("resourceclaims", "forbidden")}
        series = node.settled(lambda found: problems_of(found) == denied and users(found) == {(0, ""): {"d1", "d2"}})
        assert len([name for name, _, _ in series if name == UTIL]) == 2
        unmatched = [(labels["reason"], value) for name, labels, value in series if "unmatched" in name]
        assert unmatched == [("unresolved_claim", 1)]
        assert {labels["sharing"] for labels in node.labels(INFO).values()} == {"dra-shared"}
        states = StateLog(logging.getLogger("exporter"))
        for _ in range(5):
            assert node.problems() == denied
            log_health(states, node.flow.pipeline.collect())
        named = [record.getMessage() for record in caplog.records if "403" in record.getMessage()]
        assert len(named) == 2
        assert {message.partition(":")[0] for message in named} == {"resourceslices", "resourceclaims"}


def test_what_was_known_is_used_while_the_api_server_is_away():
    with dra_node(DRA) as node:
        put(node, *gpus())
        node.api.put("resourceclaims", claim_object(("gpu", "first"), name="c"))
        node.claim("train", "first@c")
        node.settled(lambda found: users(found) == {(1, ""): {"train"}})
        node.api.stop(keep_port=True)
        series = node.settled(lambda found: problems_of(found) == {("resourceslices", "unreachable")})
        assert users(series) == {(1, ""): {"train"}}
        node.api.start()
        node.settled(lambda found: not problems_of(found))


def test_a_recorded_extended_resource_is_attributed_by_the_slice_and_claim_of_the_control_plane():
    recorded = json.loads((CORPUS / "064-dra-extended-resource-fits.json").read_text())
    with dra_node(DRA, node="d1") as node:
        found = json.dumps(recorded["resourceslices"][0])
        for number in range(2):
            found = found.replace(f"GPU-0000000{number}-0000-0000-0000-000000000000", uuid(number))
        node.api.put("resourceslices", json.loads(found))
        (claim,) = recorded["resourceclaims"]
        node.api.put("resourceclaims", claim)
        meta = claim["metadata"]
        ids = [f"d1/gpu-{number}@{meta['name']}" for number in range(2)]
        node.rows.append((meta["namespace"], "p", "main", DRIVER, ids))
        series = node.settled(lambda found: users(found) == {(0, ""): {"p"}, (1, ""): {"p"}})
        assert pods(series)[0, ""] == 1
        assert {labels["resource"] for labels in node.labels(INFO).values()} == {"gpu_nvidia_com"}


def test_the_program_reads_claims_where_that_is_asked_for():
    arguments = cli.parse(["node", "--source=simulated", "--kubernetes", DRA], {"NODE_NAME": NODE})
    program = NodeProgram(node_config(arguments, {"NODE_NAME": NODE}))
    try:
        health = {each.source: each.reason for each in program.collect().health}
        assert health["resourceslices"] in {"connecting", "no_api_server"}
    finally:
        program.close()


def test_the_flag_has_no_effect_without_kubernetes():
    config = node_config(cli.parse(["node", DRA], {}), {})
    assert not config.dra
    assert config.warnings == (f"{DRA} has no effect without --kubernetes",)
