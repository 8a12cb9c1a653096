"""Reads from a kubelet's messages why the containers of a bound pod do not start. No I/O, no state.

The wording of unsatisfied conditions is that of NVIDIA's container toolkit, the others are those of the kubelet and of
containerd and CRI-O.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from exporter.cluster.kubernetes.objects.records import Node
from exporter.cluster.kubernetes.pods.pod_detail import ContainerReport, PodDetail

_CONDITION = re.compile(
    r"unsatisfied condition: ?(cuda|driver) ?(>=|<=|==|!=|>|<|=) ?(\d+(?:\.\d+)*)(?: \(\1 ?= ?(\d+(?:\.\d+)*)\))?",
    re.ASCII,
)
_COMPARES: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_VERSION_LABELS = {
    "cuda": (
        ("nvidia.com/cuda.runtime-version.major", "nvidia.com/cuda.runtime-version.minor"),
        ("nvidia.com/cuda.runtime.major", "nvidia.com/cuda.runtime.minor"),
    ),
    "driver": (
        (
            "nvidia.com/cuda.driver-version.major",
            "nvidia.com/cuda.driver-version.minor",
            "nvidia.com/cuda.driver-version.revision",
        ),
        ("nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev"),
    ),
}
"""Labels of GPU feature discovery that together are a version: its names since 0.15 first, then the older ones."""
_WORDS = {"cuda": "CUDA", "driver": "driver"}
_MISSING_OBJECT = re.compile(r"(secret|configmap) \"([^\"]+)\" not found", re.IGNORECASE | re.ASCII)
_MISSING_KEY = re.compile(r"couldn't find key (\S+) in (Secret|ConfigMap) (\S+)", re.ASCII)
_RUNTIME = re.compile(r"no runtime for \"([^\"]+)\" is configured|failed to find runtime handler (\S+)", re.ASCII)
_LONGEST = 500
_NAMED = 4
"""How many nodes that fit are named."""
_USUAL = frozenset({"ContainerCreating", "PodInitializing", "Completed"})


class StartFinding(NamedTuple):
    """Something that keeps the pod from starting."""

    about: str
    """`container`, `event`, `cuda`, `driver`, `object`, `runtime_class` or `image_pull_secret`."""
    text: str


def start_findings(
    pod: PodDetail, events: Sequence[str], nodes: Sequence[Node] | None, node: str
) -> list[StartFinding]:
    """What is known of why a pod does not start.

    `events` are messages about it, `nodes` those with GPUs, None while they are not known; `node` is its own.
    """
    failing = [(each, text) for each in pod.reports() if (text := _said(each))]
    messages = [*(text for _, text in failing), *events]
    found = [
        StartFinding("container", f"container {each.name} ({_image(pod, each)}): {text}") for each, text in failing
    ]
    found += [StartFinding("event", _short(text)) for text in events]
    for text in messages:
        found += [*_version(text, nodes, node), *_missing(text), *_runtime(text, pod)]
    if any("pull" in text.lower() for _, text in failing):
        found += _pull_secrets(pod)
    return list(dict.fromkeys(found))


def _said(report: ContainerReport) -> str:
    waiting, ended = report.now().waiting, report.ended()
    states = [each for each in (waiting, ended) if each is not None and each.reason not in _USUAL]
    states = [each for each in states if each.exit_code != 0]
    text = "; ".join(": ".join(filter(None, (each.reason, each.message))) for each in states)
    return _short(text)


def _short(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= _LONGEST else joined[:_LONGEST] + " …"


def _image(pod: PodDetail, report: ContainerReport) -> str:
    given = next((each.image for each in pod.containers() if each.name == report.name), None)
    return f"image {given or report.image or 'unknown'}"


def _version(text: str, nodes: Sequence[Node] | None, node: str) -> Iterable[StartFinding]:
    for what, compare, required, offered in _CONDITION.findall(text):
        here = offered or _text(next((_offered(each, what) for each in nodes or () if each.name == node), ()))
        head = (
            f"the image requires {_WORDS[what]} {compare} {required}, {f'the node {node}' if node else 'the node'} has"
        )
        yield StartFinding(what, f"{head} {here or 'an unknown version'}; {_fitting(what, compare, required, nodes)}")


def _fitting(what: str, compare: str, required: str, nodes: Sequence[Node] | None) -> str:
    if nodes is None:
        return "which nodes fit is not known"
    wanted = _numbers(required)
    names = sorted(each.name for each in nodes if _fits(_offered(each, what), compare, wanted))
    if not names:
        return "no node is labeled with a version that fits"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"nodes that fit: {', '.join(names[:_NAMED])}{more}"


def _fits(offered: tuple[int, ...], compare: str, wanted: tuple[int, ...]) -> bool:
    """Compare as many numbers as are required: `cuda=12` is met by 12.4."""
    return bool(offered) and _COMPARES[compare](offered[: len(wanted)], wanted)


def _offered(node: Node, what: str) -> tuple[int, ...]:
    """A version by the node's labels; empty where they give none."""
    labels = dict(zip(node.labels[::2], node.labels[1::2], strict=True))
    for keys in _VERSION_LABELS[what]:
        parts = [labels.get(key, "") for key in keys]
        given = [part for part in parts if part.isascii() and part.isdigit()]
        if given:
            return tuple(map(int, given))
    return ()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _missing(text: str) -> Iterable[StartFinding]:
    for kind, name in _MISSING_OBJECT.findall(text):
        yield StartFinding("object", f"the {kind.lower()} {name} does not exist in the pod's namespace")
    for key, kind, name in _MISSING_KEY.findall(text):
        yield StartFinding("object", f"the {kind.lower()} {name} has no key {key}")


def _runtime(text: str, pod: PodDetail) -> Iterable[StartFinding]:
    for names in _RUNTIME.findall(text):
        handler = next(filter(None, names))
        by = pod.spec.runtime_class_name
        asked = f"the runtime class {by}" if by else "the default runtime class"
        message = f"{asked} needs the runtime {handler}, which the node does not have"
        yield StartFinding("runtime_class", message)


def _pull_secrets(pod: PodDetail) -> list[StartFinding]:
    names = [each.name for each in pod.spec.image_pull_secrets or ()]
    text = f"the pod pulls with {', '.join(names)}" if names else "the pod names no pull secret"
    return [StartFinding("image_pull_secret", text)]
