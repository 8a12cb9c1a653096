"""Every two choices of values together: valid objects, exactly one way of discovery, and least privilege."""

from itertools import combinations

import jsonschema
import kubernetes_validate
import pytest

from tests.deploy.helm.chart import IMAGE, NEEDS_HELM, merged, refused, rendered
from tests.deploy.helm.combinations import TOGETHER_IMPOSSIBLE, pairs, rows, values
from tests.deploy.helm.test_privileges import privileges
from tests.deploy.helm.test_reports import ways
from tests.deploy.operator_schemas import custom_kinds, schema

pytestmark = NEEDS_HELM

ROWS = list(rows())
WORKLOADS = ("DaemonSet", "Deployment")


def validate(document):
    kind, version = document["kind"], document["apiVersion"].rpartition("/")[2]
    if kind in custom_kinds():
        jsonschema.Draft7Validator(schema(kind, version)).validate(document)
    else:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_every_object_of_a_combination_is_valid_and_found_in_one_way(row):
    objects = rendered(values(row))
    for document in objects.values():
        validate(document)
    for workload in objects:
        if workload[0] in WORKLOADS:
            assert len(ways(objects, workload)) == (row["discovery"] != 3)
            assert not {"hostNetwork", "hostIPC"} & privileges(objects, workload)


def test_every_pair_of_choices_that_is_possible_is_in_a_row():
    found = {frozenset(pair) for row in ROWS for pair in combinations(row.items(), 2)}
    assert found == set(pairs())
    assert len(ROWS) < 40


@pytest.mark.parametrize(("first", "second"), TOGETHER_IMPOSSIBLE)
def test_what_is_left_out_of_the_rows_is_refused_by_the_chart(first, second):
    assert "gpugauge/templates" in refused(merged(IMAGE, values({**first, **second})))


def test_a_field_that_a_kind_does_not_have_is_found():
    for name, document in rendered().items():
        if name[0] in custom_kinds():
            with pytest.raises(jsonschema.ValidationError):
                validate({**document, "spec": {**document["spec"], "spek": 1}})
