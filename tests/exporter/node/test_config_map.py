"""Counters from a ConfigMap: the last good list stays, and a named file stands in until there was one."""

import threading

import pytest

from exporter import cli
from exporter.config import ConfigError
from exporter.node.config import node_config
from exporter.node.config_map import PAUSE_SECONDS, ConfigMapCounters
from exporter.node.counters_source import counters_name, counters_source
from exporter.node.counters_watch import CountersWatch, UnusableCountersError
from exporter.node.program import NodeProgram
from exporter.node.service_account.account import ConfigMapName
from exporter.node.service_account.request import ApiServerError
from tests.clock import Clock
from tests.waiting import until

NAME = ConfigMapName("gpu", "counters")
TEMP, CLOCK = "DCGM_FI_DEV_GPU_TEMP, gauge, T\n", "DCGM_FI_DEV_SM_CLOCK, gauge, C\n"
FORBIDDEN = ApiServerError("the API server answered 403 Forbidden")


class Answers:
    """What the API server answers, which a test changes."""

    def __init__(self, now):
        self.now, self.asked = now, 0

    def __call__(self):
        self.asked += 1
        if isinstance(self.now, ApiServerError):
            raise self.now
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def file(tmp_path):
    (tmp_path / "counters.csv").write_text(CLOCK)
    return tmp_path / "counters.csv"


def source(answers, clock, file=None):
    fallback = CountersWatch(file, file, clock) if file else None
    return ConfigMapCounters(NAME, answers, fallback, clock, start=lambda function: function())


def names(loaded):
    return [row.name for row in loaded.counters.rows]


def later(clock):
    clock.now += 2 * PAUSE_SECONDS


def test_the_list_of_the_config_map_is_used_and_a_changed_one_is_due(clock):
    answers = Answers(TEMP)
    made = source(answers, clock)
    assert names(made.read()) == ["DCGM_FI_DEV_GPU_TEMP"]
    assert (made.due(), answers.asked) == (False, 1)
    answers.now = CLOCK
    assert not made.due()
    later(clock)
    assert made.due()
    assert names(made.read()) == ["DCGM_FI_DEV_SM_CLOCK"]
    assert not made.due()


def test_the_list_may_be_yaml(clock):
    made = source(Answers("fields:\n- {name: DCGM_FI_DEV_GPU_TEMP, prometheusType: gauge}\n"), clock)
    assert names(made.read()) == ["DCGM_FI_DEV_GPU_TEMP"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (FORBIDDEN, "ConfigMap gpu/counters cannot be read: the API server answered 403 Forbidden"),
        ("garbage\n", "no row of the ConfigMap gpu/counters can be used; the first problem: ConfigMap gpu/counters, "),
        ("", "no row of the ConfigMap gpu/counters can be used; it has none"),
        ("fields: 5\n", "ConfigMap gpu/counters cannot be used on line 1: fields: must be a list"),
        ("\ud800, gauge, x\n", "no row of the ConfigMap gpu/counters can be used"),
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_what_cannot_be_used_is_an_error_and_due_again_only_when_it_is_another(clock, answer, message, before):
    answers = Answers(TEMP if before else answer)
    made = source(answers, clock)
    if before:
        made.read()
        answers.now = answer
        later(clock)
        assert made.due()
    with pytest.raises(UnusableCountersError) as error:
        made.read()
    assert str(error.value).startswith(message)
    assert made.failure == str(error.value)
    later(clock)
    assert not made.due()
    answers.now = CLOCK
    later(clock)
    assert made.due()
    assert names(made.read()) == ["DCGM_FI_DEV_SM_CLOCK"]
    assert made.failure == ""


@pytest.mark.parametrize("answer", [FORBIDDEN, "garbage\n"])
def test_a_named_file_stands_in_until_the_config_map_can_be_used_and_never_after(clock, file, caplog, answer):
    answers = Answers(answer)
    made = source(answers, clock, file)
    assert names(made.read()) == ["DCGM_FI_DEV_SM_CLOCK"]
    assert [message for message in caplog.messages if "the counters file is used until it can be" in message]
    file.write_text(CLOCK + TEMP)
    assert made.due()
    assert len(names(made.read())) == 2
    assert len(caplog.messages) == 1
    answers.now = TEMP
    later(clock)
    assert made.due()
    assert names(made.read()) == ["DCGM_FI_DEV_GPU_TEMP"]
    file.write_text(CLOCK)
    assert not made.due()
    answers.now = answer
    later(clock)
    assert made.due()
    with pytest.raises(UnusableCountersError):
        made.read()


def test_a_failure_is_asked_about_sooner_again_than_an_answer(clock):
    answers = Answers(FORBIDDEN)
    made = source(answers, clock)
    with pytest.raises(UnusableCountersError):
        made.read()
    clock.now += 1.5
    made.due()
    assert answers.asked == 2


def test_a_request_that_hangs_delays_nothing_after_the_start(clock):
    hang, answers = threading.Event(), [TEMP]

    def fetch():
        if not answers:
            hang.wait()
        return answers.pop() if answers else CLOCK

    made = ConfigMapCounters(NAME, fetch, None, clock)
    assert names(made.read()) == ["DCGM_FI_DEV_GPU_TEMP"]
    later(clock)
    assert not made.due()
    later(clock)
    assert not made.due()
    hang.set()
    until(made.due)
    assert names(made.read()) == ["DCGM_FI_DEV_SM_CLOCK"]


def config(*flags, **variables):
    return node_config(cli.parse([*flags], variables), {"NODE_NAME": "n"})


def test_the_config_map_is_named_as_in_dcgm_exporter(file):
    assert config("-m", "gpu:counters").config_map == NAME
    assert config(DCGM_EXPORTER_CONFIGMAP_DATA="gpu:counters").config_map == NAME
    assert config("-m", "none", DCGM_EXPORTER_CONFIGMAP_DATA="gpu:counters").config_map is None
    for text in ("gpu", ":a", "gpu:", "gpu:a/b", "a:b:c", "GPU:a"):
        with pytest.raises(ConfigError, match=f"-m: '{text}' is not NAMESPACE:NAME"):
            config("-m", text)


def test_a_node_outside_a_cluster_runs_with_the_file_or_unready(file):
    with_file = NodeProgram(config("-m", "gpu:counters", "-f", str(file), "--source", "simulated"))
    without = NodeProgram(config("-m", "gpu:counters", "--source", "simulated"))
    try:
        assert with_file.unready() is None
        expected = "the counters file cannot be read: no API server is known: KUBERNETES_SERVICE_HOST is not set"
        assert without.unready() == f"{expected}; the log names it"
    finally:
        with_file.close()
        without.close()


def test_a_config_map_comes_before_the_fields_of_a_configuration_file(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("version: 1\nmetrics:\n  fields:\n  - {name: DCGM_FI_DEV_GPU_TEMP, prometheusType: gauge}\n")
    found = config("-m", "gpu:counters", "--config-file", str(path))
    assert found.fields is None
    assert isinstance(counters_source(found, Clock()), ConfigMapCounters)
    assert counters_name(found) == "ConfigMap gpu/counters"
