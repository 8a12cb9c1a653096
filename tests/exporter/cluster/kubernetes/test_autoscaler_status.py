"""The cluster autoscaler's status, as YAML and as text."""

import json

import pytest

from exporter.cluster.kubernetes.converting.autoscaler_status import AutoscaledGroup, AutoscalerStatus
from exporter.cluster.kubernetes.watching.kinds import object_kinds
from tests.exporter.cluster.autoscaler import GKE, config_map, group, text_status, yaml_status
from tests.exporter.cluster.fixture import GPUS, NOW

(KIND,) = (kind for kind in object_kinds(GPUS) if kind.name == "configmaps")
GROUPS = (
    group(GKE.format("gpu"), 2, 3, "InProgress"),
    group("eks-gpu-2c1f9d3b", 3, 3, "Backoff", "Unhealthy"),
)
HOSTILE = "autoscalerStatus: !!python/object/apply:os.getcwd []"


def read(*objects):
    page = KIND.codec.page(json.dumps({"metadata": {"resourceVersion": "1"}, "items": objects}).encode())
    return list(page.records.values()), page.malformed


@pytest.mark.parametrize("written", [yaml_status, text_status])
def test_both_forms_have_the_same_groups_and_time(written):
    assert read(config_map(written(*GROUPS))) == (
        [
            AutoscalerStatus(
                NOW,
                (
                    AutoscaledGroup(GKE.format("gpu"), True, 2, 3, "InProgress"),
                    AutoscaledGroup("eks-gpu-2c1f9d3b", False, 3, 3, "Backoff"),
                ),
            )
        ],
        [],
    )


@pytest.mark.parametrize("status", [yaml_status(), text_status(), "", "Initializing", None, HOSTILE])
def test_a_status_without_groups_has_none(status):
    (found,), malformed = read(config_map(status))
    assert (found.groups, malformed) == ((), [])


def test_any_other_configmap_is_left_out():
    assert read(config_map(yaml_status(*GROUPS), "other")) == ([], [])


@pytest.mark.parametrize(
    "status",
    [
        "autoscalerStatus: [",
        "autoscalerStatus: Running\nother: &a [*a]",
        "autoscalerStatus: Running\nnodeGroups: 7",
        "autoscalerStatus: Running\nnodeGroups:\n- health: {maxSize: many}",
        "NodeGroups:\n  Name: x\n  Health: Healthy (odd)\n",
        "x" * (5 << 20),
    ],
)
def test_a_status_that_cannot_be_read_costs_itself(status):
    found, (message,) = read(config_map(status))
    assert found == []
    assert message.startswith("kube-system/cluster-autoscaler-status: its status")


@pytest.mark.parametrize("time", ["never", "2026-99-99 10:00:00", ""])
def test_a_status_without_a_time_has_none(time):
    (found,), _ = read(config_map(f"time: {time}\nautoscalerStatus: Running"))
    assert found.at is None
