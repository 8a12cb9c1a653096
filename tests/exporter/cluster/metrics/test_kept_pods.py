"""The lines of pods that are kept from collection to collection are those that would be written anew."""

from dataclasses import replace

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from exporter.cluster.config import ClusterConfig, SeriesLimits
from exporter.cluster.kubernetes.objects.records import Overrides
from exporter.cluster.metrics.families import families
from exporter.cluster.metrics.pods import INFO, LOW_UTILIZATION_THRESHOLD, PHASE, POD_EXEMPTION, START
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.view import with_pending
from exporter.exposition.kept_pieces import KeptPieces
from exporter.exposition.render import render
from simulators import objects
from tests.exporter.cluster.fixture import NOW, pod, view

NOTHING = CollectorRegistry()
OF_PODS = tuple(each.name.encode() for each in (INFO, START, PHASE, LOW_UTILIZATION_THRESHOLD, POD_EXEMPTION))
ONE_DAY = 86400.0
PODS = tuple(
    pod(objects.running(objects.pod(f"p{n:03}", f"team-{n % 3}", {"nvidia.com/gpu": 1}), "node-1", NOW - 60))
    for n in range(600)
)
EXEMPT = Overrides(exemption="until-2027-01-16")
NAMESPACES = {f"team-{n}": Overrides() for n in range(3)}


def changed(number, **more):
    return (*PODS[:number], msgspec.structs.replace(PODS[number], **more), *PODS[number + 1 :])


STEPS = {
    "the same": (PODS, NAMESPACES, 0),
    "another phase": (changed(7, phase="Pending", started=None), NAMESPACES, 0),
    "another class of a namespace": (PODS, NAMESPACES | {"team-1": Overrides(workload_class="serving")}, 0),
    "a threshold of a namespace": (PODS, NAMESPACES | {"team-2": Overrides(threshold="20pct")}, 0),
    "an exemption": (changed(9, overrides=EXEMPT), NAMESPACES, 0),
    "an exemption that has ended": (changed(9, overrides=EXEMPT), NAMESPACES, 3 * ONE_DAY),
    "fewer pods": (PODS[100:], NAMESPACES, 0),
    "namespaces that are not known": (PODS, None, 0),
}


def text_of(history, kept, pods, namespaces, later, limits):
    given = replace(view(namespaces=namespaces), pods=pods, now=NOW + later, requests=None)
    return render(families(with_pending(given, history), ClusterConfig(limits=limits), []), NOTHING, None, kept).text


@pytest.mark.parametrize("most", [SeriesLimits().pods, 50])
def test_after_every_change_the_lines_are_those_of_a_watcher_that_keeps_nothing(most):
    history, kept, limits = ClusterHistory(), KeptPieces(), SeriesLimits(pods=most)
    for name, step in [*STEPS.items(), *reversed(STEPS.items())]:
        found = text_of(history, kept, *step, limits)
        expected = text_of(ClusterHistory(), KeptPieces(), *step, limits)
        ours, theirs = ([line for line in text.splitlines() if line.startswith(OF_PODS)] for text in (found, expected))
        assert ours == theirs, name
        assert len(ours) >= 3 * min(most, 500)
