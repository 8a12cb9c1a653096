"""Random clusters: what is said to be short could be had from other pods, and nothing else could.

The scheduler says so itself: it finds no pods to preempt on nodes that are full ("No preemption victims"), and finds
preemption not helpful on nodes that can never run the pod.
"""

import random
from collections import Counter

import pytest

from simulators.objects import cordoned
from tests.e2e.control_plane import processes
from tests.e2e.control_plane.situation import (
    GPU,
    Situation,
    h100,
    holding,
    made,
    offering,
    pod,
    scheduled,
    taint,
)
from tests.e2e.control_plane.situations_nodes import lost
from tests.e2e.control_plane.test_situations import exposed

pytestmark = processes.needs("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")

SHORT = {"insufficient_gpu", "fragmentation"}
PODS = 12


def node(name, chance):
    gpus = chance.choice([0, 2, 4, 8, 8])
    taints = [taint("team", chance.choice("xy"))] if chance.random() < 0.25 else None
    given = h100(name, gpus, labels={"pool": chance.choice("abc")}, taints=taints)
    if gpus and chance.random() < 0.1:
        given = offering(given, {GPU: chance.choice([0, gpus // 2])})
    state = chance.random()
    return (cordoned(given) if state < 0.2 else lost(given) if state < 0.3 else given), gpus


def asking(name, chance):
    selector = {"nodeSelector": {"pool": chance.choice("abcd")}} if chance.random() < 0.5 else {}
    given = pod(name, chance.choice([1, 2, 3, 4, 6, 8, 9]), cpu="1", memory="1Gi", **selector)
    if chance.random() < 0.3:
        toleration = {"key": "team", "operator": "Equal", "value": chance.choice("xy"), "effect": "NoSchedule"}
        given["spec"]["tolerations"].append(toleration)
    return given


def cluster(seed):
    """Some nodes, of which some are partly taken, and pods that ask for GPUs."""
    chance = random.Random(seed)
    nodes = [node(f"n{number}", chance) for number in range(chance.randint(2, 7))]
    taken = [
        holding(f"h{number}", f"n{number}", chance.randint(1, gpus))
        for number, (_, gpus) in enumerate(nodes)
        if gpus and chance.random() < 0.7
    ]
    pods = [asking(f"p{number}", chance) for number in range(PODS)]
    names = {each["metadata"]["name"]: "" for each in pods}
    return Situation(f"random-{seed}", names, (*(given for given, _ in nodes), *taken, *pods))


def said(plane, namespace):
    """How many of the pods are bound, are short of what others have, and can run nowhere, as the scheduler says."""
    found = Counter()
    for name, condition in scheduled(plane, namespace).items():
        if name.startswith("p"):
            victims = "No preemption victims" in condition.get("message", "")
            found["bound" if condition["status"] == "True" else "short" if victims else "never"] += 1
    return found


def found(watcher, namespace):
    """The same by the reasons that the watcher exposes."""
    sums = Counter()
    for reason, pods in exposed(watcher, namespace)[0].items():
        sums["bound" if reason == "starting" else "short" if reason in SHORT else "never"] += pods
    return sums


@pytest.mark.parametrize("seed", range(8))
def test_reasons_agree_with_what_the_scheduler_says_of_preemption(plane, watcher, seed):
    given = cluster(seed)
    with made(plane, given):
        plane.until(lambda: found(watcher, given.name).total() == PODS)
        plane.until(lambda: found(watcher, given.name) == said(plane, given.name), 30.0)
