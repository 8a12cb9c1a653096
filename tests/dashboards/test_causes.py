"""A value that is missing is told from one that cannot be there: not supported here, source broken, shared, no data."""

import pytest

from dashboards import queries as q
from dashboards import states
from tests.alerts.promtool import RuleFixture
from tests.alerts.test_aggregates import check
from tests.dashboards.rendered import RENDERED, filled, panels

pytestmark = pytest.mark.prometheus

NODE = {"cluster": "c", "node": "n"}


def expression(uid: str, title: str) -> str:
    (panel,) = [each for each in panels(RENDERED[uid]) if each["title"] == title]
    return filled(panel["targets"][0]["expr"])


def shown(tmp_path, text: str, value: float | None, **series: tuple[dict[str, str], float]) -> None:
    fixture = RuleFixture()
    for name, (labels, number) in series.items():
        fixture.add(name, {**NODE, **labels}, f"{number}x20")
    fixture.expect(text, 5, *([({}, value)] if value is not None else []))
    check(tmp_path, fixture, groups=())


UP = {"gpugauge_source_up": ({"source": "dcgm"}, 1)}
DOWN = {"gpugauge_source_up": ({"source": "dcgm"}, 0)}
UNSUPPORTED = {
    "gpugauge_field_unsupported_devices": ({"field": "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "reason": "not_supported"}, 8)
}


@pytest.mark.parametrize(
    ("series", "value"),
    [
        (UP, None),
        (DOWN, states.SOURCE_BROKEN),
        (UP | UNSUPPORTED, states.NOT_SUPPORTED),
        (DOWN | UNSUPPORTED, states.SOURCE_BROKEN),
    ],
    ids=["no data", "source broken", "not supported", "both"],
)
def test_a_node_without_utilization_says_why(tmp_path, series, value):
    shown(tmp_path, expression("gpu-node", "Utilization"), value, **series)


def test_a_value_comes_before_every_cause(tmp_path):
    text = q.value_or_cause("sum(known)", broken="down == 0", unsupported="unsupported > 0", shared="shared")
    causes = {"down": ({}, 0), "unsupported": ({}, 1), "shared": ({}, 1)}
    shown(tmp_path, text, 0, known=({}, 0), **causes)
    shown(tmp_path, text, states.SHARED, **causes)


def test_a_workload_on_shared_devices_says_so(tmp_path):
    labels = {"gpu_namespace": "ns", "gpu_pod": "p", "UUID": "GPU-1", "sharing": "time-slicing"}
    text = expression("gpu-workload", "Busy, 15 minutes")
    shown(tmp_path, text, states.SHARED, gpugauge_allocation_info=(labels, 1), **UP)


def test_every_cause_has_a_word_of_its_own_and_none_is_gray():
    assert len({each.word for each in states.CAUSES}) == len({each.color for each in states.CAUSES}) == 3
    assert [each.since for each in states.CAUSES] == sorted(each.since for each in states.CAUSES)
