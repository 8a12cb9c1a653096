"""The choice of a source: in order, kept for a while after a failure, and never the simulated one."""

from dataclasses import dataclass, field

import pytest

from exporter.node.devices.device_source import ReaderConfig
from exporter.node.devices.readings import Readings
from exporter.node.reader.auto import KEEP_CHOICE_SECONDS, OPENERS, AutoSource
from exporter.source import SourceError

CONFIG = ReaderConfig("auto", (), 1.0)


@dataclass
class Node:
    """What runs on a node, and what was opened there; a source answers while its choice is in `up`."""

    up: set = field(default_factory=set)
    listening: str | None = None
    others: tuple = ()
    now: float = 0.0
    opened: list = field(default_factory=list)
    closed: list = field(default_factory=list)

    def auto(self, config=CONFIG):
        openers = {choice: lambda config, choice=choice: FakeSource(self, choice, config) for choice in OPENERS}
        return AutoSource(config, openers, lambda: self.listening, lambda: self.others, lambda: self.now)


class FakeSource:
    def __init__(self, node, choice, config):
        self.node, self.choice = node, choice
        self.name = "nvml" if choice == "nvml" else "dcgm"
        node.opened.append((choice, config.source, config.remote))

    def read(self):
        if self.choice not in self.node.up:
            raise SourceError(f"no_{self.name}", f"{self.choice} is down")
        return Readings(self.name, self.node.now, ())

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
    node.auto(ReaderConfig("auto", (), 1.0, remote="dcgm:5555")).read()
    assert node.opened == [("host engine", "dcgm", "dcgm:5555")]


def test_an_engine_is_embedded_where_no_other_runs():
    node = Node(up={"embedded engine", "nvml"})
    node.auto().read()
    assert node.opened == [("embedded engine", "dcgm", None)]


def test_no_second_engine_is_started_beside_another():
    node = Node(up={"embedded engine", "nvml"}, others=(4711,))
    assert node.auto().read().source == "nvml"
    assert node.opened == [("nvml", "nvml", None)]


def test_no_engine_is_embedded_where_one_listens_but_does_not_answer():
    node = Node(up={"embedded engine", "nvml"}, listening="127.0.0.1:5555")
    assert node.auto().read().source == "nvml"
    assert [choice for choice, _, _ in node.opened] == ["host engine", "nvml"]
    assert node.closed == ["host engine"]


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


def test_a_chosen_source_that_fails_is_tried_alone_for_a_while():
    node = Node(up={"host engine", "nvml"}, listening="127.0.0.1:5555")
    auto = node.auto()
    auto.read()
    node.up, node.now = {"nvml"}, KEEP_CHOICE_SECONDS - 1
    assert reason(auto.read).reason == "no_dcgm"
    node.now = KEEP_CHOICE_SECONDS
    assert auto.read().source == "nvml"
    assert node.closed == ["host engine", "host engine"]


def test_closing_closes_the_chosen_source():
    node = Node(up={"nvml"}, others=(1,))
    auto = node.auto()
    auto.close()
    auto.read()
    auto.close()
    assert node.closed == ["nvml"]
    assert auto.name == "nvml"
