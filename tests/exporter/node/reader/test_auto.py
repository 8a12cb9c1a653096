"""The choice of a source: in order, kept for a while after a failure, and never the simulated one."""

import logging
from dataclasses import dataclass, field

import msgspec
import pytest

from exporter.config import DEFAULT_INTERVAL_SECONDS
from exporter.node.devices.fields.device_source import ReaderConfig, SourceChoice, WantedField
from exporter.node.devices.readings.readings import Readings
from exporter.node.reader.auto import PATIENCE_SECONDS, AutoSource, openers_of
from exporter.node.reader.reasons import ReaderReason
from exporter.source import SourceError

OPENERS = openers_of(lambda xids: None)

CONFIG = ReaderConfig("auto", (), DEFAULT_INTERVAL_SECONDS)
NAMED = ReaderConfig("auto", (), DEFAULT_INTERVAL_SECONDS, remote="dcgm:5555")
ENGINE = "127.0.0.1:5555"
FIELDS = (WantedField(150, "int", "gpu", "basic"),)


@dataclass
class Node:
    """What runs on a node, and what was opened there; a source answers while its choice is in `up`."""

    up: set = field(default_factory=set)
    listening: str | None = None
    others: tuple = ()
    now: float = 0.0
    opened: list = field(default_factory=list)
    closed: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    """What was started in the background and has not run yet."""
    hanging: bool = False
    """Whether a host engine accepts a connection and does not answer."""
    wanted: dict = field(default_factory=dict)
    """The fields that each source was told of."""

    def auto(self, config=CONFIG):
        openers = {choice: lambda config, choice=choice: FakeSource(self, choice, config) for choice in OPENERS}
        return AutoSource(
            config, openers, lambda: self.listening, lambda: self.others, lambda: self.now, self.asked.append, self.wait
        )

    def wait(self, event, seconds):
        """Wait for what runs in the background, which never ends while the engine hangs."""
        if not self.hanging:
            self.run_background()
        return event.is_set()

    def collect(self, auto):
        """One collection, an interval after the last one: the source that answered, or the reason why none did."""
        self.now += DEFAULT_INTERVAL_SECONDS
        try:
            found = auto.read().source
        except SourceError as error:
            found = error.reason
        self.run_background()
        return found

    def run_background(self):
        while self.asked and not self.hanging:
            self.asked.pop()()


class FakeSource:
    def __init__(self, node, choice, config):
        self.node, self.choice = node, choice
        self.name = "nvml" if choice == "nvml" else "dcgm"
        node.opened.append((choice, config.source, config.remote))

    def read(self):
        if self.choice not in self.node.up:
            raise SourceError(f"no_{self.name}", f"{self.choice} is down")
        return Readings(self.name, self.node.now, ())

    def want(self, fields):
        self.node.wanted[self.choice] = fields

    def close(self):
        self.node.closed.append(self.choice)


def reason(read):
    with pytest.raises(SourceError) as caught:
        read()
    return caught.value


def test_a_host_engine_that_listens_comes_first():
    node = Node(up=set(OPENERS), listening="127.0.0.1:5555")
    assert node.auto().read().source == "dcgm"
    assert node.opened == [("host engine", "dcgm", "127.0.0.1:5555")]


def test_a_configured_host_engine_is_read_without_looking_for_one():
    node = Node(up=set(OPENERS), listening="127.0.0.1:5555")
    node.auto(NAMED).read()
    assert node.opened == [("host engine", "dcgm", "dcgm:5555")]


def test_an_engine_is_embedded_where_no_other_runs():
    node = Node(up={"embedded engine", "nvml"})
    node.auto().read()
    assert node.opened == [("embedded engine", "dcgm", None)]


def test_no_second_engine_is_started_beside_another():
    node = Node(up={"embedded engine", "nvml"}, others=(4711,))
    auto = node.auto()
    readings = auto.read()
    assert (readings.source, node.opened) == ("nvml", [("nvml", "nvml", None)])
    said = ((ReaderReason.OTHER_ENGINE, "no engine is embedded: these processes seem to have an engine: 4711"),)
    assert readings.problems == auto.read().problems == said


def test_that_no_engine_was_embedded_beside_another_is_also_said_by_the_next_reader_process():
    node = Node(up={"nvml"}, others=(4711,))
    auto = node.auto()
    auto.read()
    restarted = node.auto(msgspec.structs.replace(CONFIG, choice=auto.choice))
    assert [reason for reason, _ in restarted.read().problems] == ["other_engine"]


def test_nothing_is_said_of_other_engines_while_a_host_engine_is_read():
    node = Node(up=set(OPENERS), others=(4711,), listening=ENGINE)
    assert node.auto().read().problems == ()


def test_no_engine_is_embedded_where_one_listens_but_does_not_answer():
    node = Node(up={"embedded engine", "nvml"}, listening="127.0.0.1:5555")
    assert node.auto().read().source == "nvml"
    assert [choice for choice, _, _ in node.opened] == ["host engine", "nvml"]


def test_when_nothing_answers_the_reason_is_that_of_the_first_candidate_and_nothing_is_simulated():
    node = Node()
    error = reason(node.auto().read)
    assert error.reason == "no_dcgm"
    assert str(error) == "embedded engine: embedded engine is down; nvml: nvml is down"
    assert "simulated" not in OPENERS


def test_the_choice_stays_while_it_answers():
    node = Node(up={"nvml"}, others=(1,))
    auto = node.auto()
    auto.read()
    node.up, node.others = set(OPENERS), ()
    assert auto.read().source == "nvml"
    assert auto.name == "nvml"


def test_a_chosen_source_that_fails_is_tried_alone_for_a_while_after_its_first_failure():
    node = Node(up={"embedded engine"})
    auto = node.auto()
    assert node.collect(auto) == "dcgm"
    node.up = {"nvml"}
    assert node.collect(auto) == "no_dcgm"
    node.now += PATIENCE_SECONDS["embedded engine"] - DEFAULT_INTERVAL_SECONDS - 1
    assert node.collect(auto) == "no_dcgm"
    assert node.closed == []
    assert node.collect(auto) == "nvml"
    assert set(node.closed) == {"embedded engine"}


def test_a_source_that_answered_in_between_is_tried_alone_for_as_long_again():
    node = Node(up={"nvml"}, others=(1,))
    auto = node.auto()
    for up in ("nvml", "", "nvml", "", "nvml"):
        node.up = {up}
        assert node.collect(auto) == (up or "no_nvml")
    assert [choice for choice, _, _ in node.opened] == ["nvml"]


@pytest.mark.parametrize("config", [CONFIG, NAMED], ids=["found", "named"])
def test_a_restart_of_the_host_engine_changes_no_source(config):
    node = Node(up=set(OPENERS), listening=ENGINE)
    auto = node.auto(config)
    assert node.collect(auto) == "dcgm"
    node.up, node.listening = {"embedded engine", "nvml"}, None
    assert node.collect(auto) == "no_dcgm"
    node.up, node.listening = set(OPENERS), ENGINE
    assert node.collect(auto) == "dcgm"
    assert [choice for choice, _, _ in node.opened] == ["host engine"]


@pytest.mark.parametrize("config", [CONFIG, NAMED], ids=["found", "named"])
def test_nvml_is_read_after_the_host_engine_was_away_for_five_minutes_and_no_engine_is_embedded(config):
    node = Node(up=set(OPENERS), listening=ENGINE)
    auto = node.auto(config)
    assert node.collect(auto) == "dcgm"
    node.up, node.listening = {"embedded engine", "nvml"}, None
    failures = int(300 / DEFAULT_INTERVAL_SECONDS)
    assert [node.collect(auto) for _ in range(failures + 20)] == ["no_dcgm"] * failures + ["nvml"] * 20
    assert [choice for choice, _, _ in node.opened] == ["host engine", "nvml"]


def test_a_host_engine_that_is_late_at_start_is_read_once_it_answers():
    node = Node(up={"embedded engine", "nvml"})
    auto = node.auto(NAMED)
    assert [node.collect(auto) for _ in range(3)] == ["nvml"] * 3
    node.up.add("host engine")
    assert [node.collect(auto) for _ in range(3)] == ["nvml", "dcgm", "dcgm"]
    assert (auto.name, node.closed) == ("dcgm", ["nvml"])
    node.up.remove("host engine")
    assert node.collect(auto) == "no_dcgm"
    assert [choice for choice, _, _ in node.opened] == ["host engine", "nvml"]


def test_nvml_is_not_delayed_by_a_host_engine_that_does_not_answer():
    node = Node(up={"nvml"})
    auto = node.auto(NAMED)
    assert [auto.read().source for _ in range(5)] == ["nvml"] * 5
    assert len(node.asked) == 1
    node.up.add("host engine")
    assert auto.read().source == "nvml"
    node.run_background()
    assert auto.read().source == "dcgm"


def test_a_host_engine_that_hangs_before_it_is_chosen_does_not_keep_nvml_from_being_read():
    node = Node(up={"host engine", "nvml"}, hanging=True)
    auto = node.auto(NAMED)
    assert [node.collect(auto) for _ in range(4)] == ["nvml"] * 4
    assert len(node.asked) == 1
    node.hanging = False
    assert [node.collect(auto) for _ in range(3)] == ["nvml", "dcgm", "dcgm"]


def test_without_nvml_the_reason_is_that_the_host_engine_has_not_answered():
    node = Node(hanging=True)
    auto = node.auto(NAMED)
    for message in ("has not answered within 8 s", "has not answered yet; it is being asked again"):
        error = reason(auto.read)
        assert error.reason == "timeout"
        assert f"host engine: the host engine {message}; nvml: nvml is down" in str(error)


def test_a_host_engine_that_hangs_again_when_it_has_answered_in_the_background_is_not_chosen():
    node = Node(up={"nvml"})
    auto = node.auto(NAMED)
    node.collect(auto)
    node.up.add("host engine")
    assert node.collect(auto) == "nvml"
    node.hanging = True
    assert [node.collect(auto) for _ in range(3)] == ["nvml"] * 3
    assert (auto.name, node.closed) == ("nvml", [])


def test_a_host_engine_that_answered_only_when_it_was_asked_is_not_chosen():
    node = Node(up={"nvml"})
    auto = node.auto(NAMED)
    node.collect(auto)
    node.up.add("host engine")
    assert node.collect(auto) == "nvml"
    node.up.remove("host engine")
    assert [node.collect(auto) for _ in range(2)] == ["nvml"] * 2
    assert node.closed == []


def test_while_the_host_engine_is_asked_it_is_neither_read_nor_closed():
    node = Node(up={"nvml"})
    auto = node.auto(NAMED)
    auto.read()
    auto.read()
    node.up = {"host engine"}
    node.now += 1
    assert reason(auto.read).reason == "no_nvml"
    node.now += PATIENCE_SECONDS["nvml"]
    error = reason(auto.read)
    assert "host engine: host engine is down; it is being asked again; nvml: nvml is down" in str(error)
    auto.close()
    assert "host engine" not in node.closed


def test_each_change_is_logged_once(caplog):
    caplog.set_level(logging.INFO, logger="exporter.node.reader.auto")
    node = Node(up={"nvml"})
    auto = node.auto(NAMED)
    for up in ({"nvml"}, {"host engine", "nvml"}, {"nvml"}, {"host engine", "nvml"}, {"nvml"}):
        node.up = up
        for _ in range(13):
            node.collect(auto)
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "reading from nvml",
        "reading from host engine",
        "reading from nvml",
        "reading from host engine",
        "reading from nvml",
    ]


def test_closing_closes_the_chosen_source():
    node = Node(up={"nvml"}, others=(1,))
    auto = node.auto()
    auto.close()
    auto.read()
    auto.close()
    assert node.closed == ["nvml"]
    assert auto.name == "nvml"


def test_closing_closes_the_host_engine_too():
    node = Node(up={"nvml"})
    auto = node.auto(NAMED)
    auto.read()
    auto.close()
    assert sorted(node.closed) == ["host engine", "nvml"]


def next_process(node, auto):
    """The source in the next reader process, after the one of `auto` was killed."""
    return node.auto(msgspec.structs.replace(CONFIG, choice=auto.choice))


def test_the_next_process_reads_the_host_engine_alone_until_its_patience_since_the_first_failure_is_over():
    node = Node(up={"host engine", "nvml"}, listening=ENGINE)
    auto = node.auto()
    assert node.collect(auto) == "dcgm"
    node.up, node.listening = {"nvml"}, None  # an engine that is away does not listen
    began = node.now + DEFAULT_INTERVAL_SECONDS
    while node.now < began + PATIENCE_SECONDS["host engine"] - DEFAULT_INTERVAL_SECONDS:
        assert node.collect(auto) == "no_dcgm"
        auto = next_process(node, auto)
    assert node.collect(auto) == "nvml"
    assert ("embedded engine", "dcgm", None) not in node.opened


def test_the_next_process_asks_the_known_host_engine_while_it_reads_nvml():
    node = Node(up={"nvml"}, listening=ENGINE)
    auto = node.auto()
    assert node.collect(auto) == "nvml"
    node.listening = None
    auto = next_process(node, auto)
    assert node.collect(auto) == "nvml"
    node.up.add("host engine")
    assert [node.collect(auto) for _ in range(3)][-1] == "dcgm"
    assert ("embedded engine", "dcgm", None) not in node.opened


def test_the_next_process_embeds_no_engine_where_another_one_runs_by_then():
    node = Node(up={"embedded engine", "nvml"})
    auto = node.auto()
    assert node.collect(auto) == "dcgm"
    node.others = (4711,)
    node.opened.clear()
    assert node.collect(next_process(node, auto)) == "nvml"
    assert [opened[0] for opened in node.opened] == ["nvml"]


def test_without_a_choice_the_next_process_chooses():
    node = Node()
    auto = node.auto()
    assert node.collect(auto) == "no_dcgm"
    assert auto.choice == SourceChoice()
    node.up = {"nvml"}
    assert node.collect(next_process(node, auto)) == "nvml"


@pytest.mark.parametrize("choice", ["host engine", "embedded engine", "nvml"])
def test_other_fields_reach_the_chosen_source(choice):
    node = Node(up={choice}, listening=ENGINE if choice == "host engine" else None)
    auto = node.auto()
    node.collect(auto)
    auto.want(FIELDS)
    node.collect(auto)
    assert node.wanted[choice] == FIELDS


def test_other_fields_reach_the_host_engine_after_it_was_asked_in_the_background():
    node = Node(up={"nvml"}, listening=ENGINE)
    auto = node.auto()
    node.collect(auto)
    auto.read()  # asks the engine in the background, which has not answered yet
    auto.want(FIELDS)
    assert "host engine" not in node.wanted
    node.run_background()
    node.up.add("host engine")
    assert [node.collect(auto) for _ in range(3)][-1] == "dcgm"
    assert node.wanted["host engine"] == FIELDS
