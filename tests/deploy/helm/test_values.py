"""Values: which there are, what they are, and that the schema finds others."""

import json

import jsonschema
import pytest
import yaml

from exporter.cluster.kubernetes.watching.permissions import WATCHED
from scripts.helm_values import settable
from scripts.permissions import feature
from tests.deploy.helm.chart import CHART, merged, nested

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())


def test_the_defaults_agree_with_the_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.Draft7Validator(SCHEMA).validate(DEFAULTS)


def test_every_value_says_what_it_is_where_its_name_does_not():
    silent = {"annotations", "pullPolicy", "kind", "priorityClassName", "terminationGracePeriodSeconds"}
    found = list(settable((CHART / "values.yaml").read_text()))
    assert len(found) > 100
    assert {each.path[-1] for each in found if not each.meaning} == silent


@pytest.mark.parametrize(
    "wrong",
    [
        nested(sauce="nvml"),
        nested(source="gpu"),
        nested(node__port="http"),
        nested(watcher__replicas=0),
        nested(clusterLabel="k8s-cluster"),
        nested(monitoring__discovery="both"),
        nested(basicAuth__passwordHash="secret"),
        nested(image__digest="sha256:1"),
    ],
)
def test_a_value_that_there_is_not_or_of_another_kind_is_found_by_the_schema(wrong):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(SCHEMA).validate(merged(DEFAULTS, wrong))


def test_each_optional_permission_of_the_watcher_is_a_value():
    optional = [feature(part) for part in WATCHED if not part.needed]
    assert list(DEFAULTS["watcher"]["permissions"]) == optional
