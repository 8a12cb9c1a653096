"""Records what an API server answers to a watcher, so that tests without one can replay it.

    python -m tests.e2e.control_plane.recording [SITUATION ...]

makes these situations, or all, on a real control plane, with a watcher in this process whose requests are recorded,
and writes one file for each into `tests/exporter/cluster/recorded`. Answers are reduced: without managed fields and
bookmarks.
"""

import json
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.watching.api import open_api
from exporter.cluster.pipeline import ClusterPipeline
from tests.e2e.control_plane.plane import control_plane
from tests.e2e.control_plane.shipped import apply_rights
from tests.e2e.control_plane.situation import made
from tests.e2e.control_plane.situations import ALL

FOLDER = Path(__file__).parents[2] / "exporter/cluster/recorded"
SETTLED_SECONDS = 1.5
"""How long nothing may have changed before a recording ends."""


class Recording:
    """The answers of one watcher's requests in the order in which they came. Any thread may add one."""

    def __init__(self, namespace):
        self._namespace = namespace
        self.exchanges = []
        self.changed_at = time.monotonic()
        self._lock = threading.Lock()

    def concerns(self, given):
        """Whether an object is of the situation: other namespaces have what earlier situations left."""
        metadata = given["metadata"]
        namespace = metadata["name"] if given.get("kind") == "Namespace" else metadata.get("namespace")
        return namespace in (None, self._namespace)

    def add(self, path, answer):
        with self._lock:
            self.exchanges.append({"path": path, **answer})
            self.changed_at = time.monotonic()

    def settled(self):
        return time.monotonic() - self.changed_at > SETTLED_SECONDS


class RecordingApi:
    """An API whose pages and lines are recorded as they are read."""

    def __init__(self, api, recording):
        self._api, self._recording = api, recording

    def page(self, path, query):
        body = self._api.page(path, query)
        decoded = json.loads(body)
        kind = {"kind": decoded["kind"].removesuffix("List")}
        items = [reduced(each) for each in decoded["items"] if self._recording.concerns(kind | each)]
        if items:
            self._recording.add(path, {"items": items})
        return body

    @contextmanager
    def lines(self, path, query, silence):
        with self._api.lines(path, query, silence) as lines:
            yield self._recorded(path, lines)

    def _recorded(self, path, lines):
        for line in lines:
            change = json.loads(line)
            if change["type"] != "BOOKMARK" and self._recording.concerns(change["object"]):
                self._recording.add(path, {"type": change["type"], "object": reduced(change["object"])})
            yield line

    def interrupt(self):
        self._api.interrupt()

    def close(self):
        self._api.close()


def reduced(given):
    """An object without what no watcher reads."""
    metadata = {key: value for key, value in given["metadata"].items() if key not in ("managedFields", "generation")}
    return {**given, "metadata": metadata}


@contextmanager
def recorded(plane, namespace):
    """The recording of a watcher that runs meanwhile, with the shipped rights."""
    recording = Recording(namespace)
    config = ClusterConfig(kubeconfig=plane.kubeconfig("recorded", plane.token("gpugauge", "gpugauge-cluster")))
    pipeline = ClusterPipeline(config, lambda config: RecordingApi(open_api(config), recording))
    pipeline.start()
    try:
        plane.until(pipeline.ready)
        yield recording
    finally:
        pipeline.stop()


def write(folder, plane, situation):
    """Write what a watcher is told that was there before, and what one lists that starts at the end."""
    with recorded(plane, situation.name) as watched, made(plane, situation):
        time.sleep(SETTLED_SECONDS)
        plane.until(watched.settled)
        with recorded(plane, situation.name) as listed:
            plane.until(listed.settled)
        head = {
            "kubernetes": plane.call("GET", "/version")["gitVersion"],
            "recorded_at": int(time.time()),
            "pods": situation.reasons(),
            "work": situation.blocked,
        }
        lines = (head, *watched.exchanges, *({"late": True, **each} for each in listed.exchanges))
    (folder / f"{situation.name}.jsonl").write_text(
        "".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8"
    )


def main(names):
    others = ("kube-scheduler", "kube-controller-manager")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder), *others) as plane:
        apply_rights(plane)
        for situation in (each for each in ALL if each.name in names or not names):
            write(FOLDER, plane, situation)
            sys.stdout.write(f"{situation.name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
