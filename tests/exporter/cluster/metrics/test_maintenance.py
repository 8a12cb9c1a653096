"""Metrics of nodes under maintenance. A failed upgrade is not maintenance."""

import pytest

from exporter.cluster.metrics.maintenance import maintenance_families, reasons
from simulators import objects
from tests.exporter.cluster.fixture import NOW, exposed, node, view

GPU = {"nvidia.com/gpu": 8}


def labeled(**labels):
    return objects.node("n1", GPU, {**objects.gpu_labels("H200", 8), **labels})


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("cordon-required", ["driver_upgrade"]),
        ("pod-restart-required", ["driver_upgrade"]),
        ("validation-required", ["driver_upgrade"]),
        ("upgrade-required", []),
        ("upgrade-done", []),
        ("upgrade-failed", []),
        ("", []),
    ],
)
def test_a_driver_upgrade_is_maintenance_from_its_cordon_to_its_end(state, expected):
    assert list(reasons(node(labeled(**{"nvidia.com/gpu-driver-upgrade-state": state})), NOW)) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [("pending", ["mig_reconfig"]), ("rebooting", ["mig_reconfig"]), ("success", []), ("failed", [])],
)
def test_a_node_being_repartitioned_is_under_maintenance(state, expected):
    assert list(reasons(node(labeled(**{"nvidia.com/mig.config.state": state})), NOW)) == expected


def test_a_node_with_an_autoscalers_taint_is_about_to_be_removed():
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
    leaving = objects.node("n1", GPU, objects.gpu_labels("H200", 8), [taint])
    assert list(reasons(node(leaving), NOW)) == ["scale_down"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("until-2027-01-15", ["planned"]),
        ("until-2027-01-29", ["planned"]),
        ("until-2027-01-14", []),
        ("until-2027-01-30", []),
        ("2027-01-15", []),
        ("until-tomorrow", []),
        ("", []),
    ],
)
def test_planned_maintenance_lasts_through_its_day_which_is_at_most_14_days_ahead(value, expected):
    planned = labeled()
    planned["metadata"]["annotations"] = {"gpugauge.io/maintenance": value}
    assert list(reasons(node(planned), NOW)) == expected


def test_a_cordoned_node_is_under_maintenance_and_a_working_one_is_not():
    families = maintenance_families(view(nodes=[objects.cordoned(labeled()), objects.node("n2", GPU)]))
    assert exposed(families) == {'gpugauge_node_maintenance{node="n1",reason="cordon"}': 1}


def test_there_is_no_family_while_the_nodes_are_unknown():
    assert maintenance_families(view()) == []
