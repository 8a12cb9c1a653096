"""Who pays for a namespace and where a node stands, from the labels whose keys the flags name."""

import json

import msgspec
import pytest

from exporter.cluster.kubernetes.nodes.metadata_labels import node_values
from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.config import ConfigError
from exporter.flags.values import mapping
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, node

KEYS = {"team": "finops.io/team", "environment": "env"}
VALUE = mapping("team", "cost_center", "environment")


def owners_of(labels, keys):
    kind = next(kind for kind in object_kinds(GPUS, keys) if kind.name == "namespaces")
    given = objects.namespace("team-a", labels)
    (record,) = kind.codec.page(
        json.dumps({"metadata": {"resourceVersion": "1"}, "items": [given]}).encode()
    ).records.values()
    return record.owners


def test_a_namespace_has_the_values_of_the_named_labels_and_empty_ones_for_the_others():
    labels = {"finops.io/team": "vision", "env": "prod", "cost_center": "not named"}
    assert owners_of(labels, KEYS) == ("vision", "", "prod")
    assert owners_of({}, KEYS) == ("", "", "")
    assert owners_of(labels, {}) == ("", "", "")


def test_a_node_has_the_values_of_the_named_labels():
    found = node(objects.node("n1", labels={"topology.kubernetes.io/zone": "z1", "rack": "r7"}))
    assert node_values(found, {"zone": "topology.kubernetes.io/zone", "rack": "rack"}) == ("z1", "r7")
    assert node_values(found, {"zone": "other"}) == ("", "")
    assert node_values(msgspec.structs.replace(found, labels=()), {"zone": "z"}) == ("", "")


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", {}),
        ("team=finops.io/team", {"team": "finops.io/team"}),
        (" team=a , environment=b=c,", {"team": "a", "environment": "b=c"}),
        ("team=a,team=b", {"team": "b"}),
    ],
)
def test_a_mapping_is_written_as_pairs(text, keys):
    assert VALUE.read(text) == keys


@pytest.mark.parametrize("part", ["team", "owner=x", "team=", "=x"])
def test_a_pair_that_cannot_be_used_is_named_with_those_that_can(part):
    with pytest.raises(ConfigError, match=f"'{part}' is not one of team=KEY, cost_center=KEY, environment=KEY"):
        VALUE.read(f"cost_center=a,{part}")
