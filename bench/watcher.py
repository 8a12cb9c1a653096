"""The cluster watcher on a large cluster: time of the first sync, memory at its peak, CPU while objects change.

A second process plays the API server from ready-made text, so that only the watcher is measured:

    python bench/watcher.py [--pods 100000] [--nodes 10000] [--gpu-share 0.2] [--seconds 60]
"""

import argparse
import json
import resource
import socket
import subprocess
import sys
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from exporter.cluster.config import ClusterConfig
from exporter.cluster.pipeline import ClusterPipeline
from simulators import objects

POD_BYTES = 7900
NODE_BYTES = 15_000
CHANGES_PER_SECOND = 50
BUDGET_SECONDS, BUDGET_MIB, BUDGET_CPU = 30.0, 300.0, 0.05
FULL = "0/10000 nodes are available: 9000 Insufficient nvidia.com/gpu, 1000 node(s) had untolerated taint(s)."


def padded(given: objects.Object, size: int) -> bytes:
    """An object's text, brought to the size usual in clusters by the parts that a watcher ignores."""
    short = len(json.dumps(given))
    given["metadata"]["managedFields"] = [{"manager": "kubelet", "fieldsV1": {"f:x": "y" * max(0, size - short - 80)}}]
    return json.dumps(given).encode()


def pod_texts() -> dict[str, bytes]:
    """One text per sort of pod; @N@ and @H@ stand for numbers."""
    job = objects.owner("Job", "train-@G@", "team-@T@")
    wanted = objects.pod("train-@N@", "team-@T@", {"nvidia.com/gpu": 1}, job, created=1.79e9)
    plain = objects.pod("web-@N@", "team-@T@", {}, objects.owner("ReplicaSet", "web-7f9c", "team-@T@"), created=1.79e9)
    found = {
        "running": objects.running(wanted, "node-@H@", 1.79e9),
        "waiting": objects.unschedulable(wanted, FULL, 1.79e9),
        "plain": objects.running(plain, "node-@H@", 1.79e9),
    }
    for each in found.values():
        each["metadata"]["uid"] = "0b5e5f0a-0000-4000-8000-@U@"
        each["metadata"]["resourceVersion"] = "5"
    return {name: padded(given, POD_BYTES) for name, given in found.items()}


class Served:
    """The made-up cluster as pages."""

    def __init__(self, pods: int, nodes: int, gpu_share: float) -> None:
        self.counts = {"pods": pods, "nodes": nodes, "namespaces": 200}
        self.gpu_every = max(1, round(1 / gpu_share))
        self.texts = pod_texts()
        labels = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)
        labels |= {f"feature.node.kubernetes.io/cpu-{number}": "true" for number in range(40)}
        self.node = padded(objects.node("node-@N@", {"nvidia.com/gpu": 8}, labels), NODE_BYTES)
        self.namespace = padded(objects.namespace("team-@N@"), 900)

    def one(self, kind: str, number: int) -> bytes:
        if kind == "nodes":
            return self.node.replace(b"@N@", b"%d" % number)
        if kind == "namespaces":
            return self.namespace.replace(b"@N@", b"%d" % number)
        sort = "plain" if number % self.gpu_every else "waiting" if number % (self.gpu_every * 20) == 0 else "running"
        text = self.texts[sort].replace(b"@N@", b"%d" % number).replace(b"@U@", b"%012d" % number)
        text = text.replace(b"@T@", b"%d" % (number % 200)).replace(b"@G@", b"%d" % (number // 64))
        return text.replace(b"@H@", b"%d" % (number % max(1, self.counts["nodes"])))

    def page(self, kind: str, begin: int, limit: int) -> bytes:
        end = min(begin + limit, self.counts[kind])
        items = b",".join(self.one(kind, number) for number in range(begin, end))
        more = b',"continue":"%d"' % end if end < self.counts[kind] else b""
        return b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"9"%b},"items":[%b]}' % (more, items)


class Exchange(BaseHTTPRequestHandler):
    """Serves pages; a watch of pods gets changes at a steady pace."""

    protocol_version = "HTTP/1.1"
    served: Served

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        kind, query = parts.path.rsplit("/", 1)[-1], parse_qs(parts.query)
        if "watch" in query:
            with suppress(OSError):  # the watcher has gone
                self.watch(kind, time.monotonic() + int(query["timeoutSeconds"][0]))
            return
        body = self.served.page(kind, int(query.get("continue", ["0"])[0]), int(query["limit"][0]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def watch(self, kind: str, end: float) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        number = 0
        while time.monotonic() < end:
            time.sleep(1 / CHANGES_PER_SECOND if kind == "pods" else 1)
            number += 1
            item = self.served.one(kind, number * 7 % self.served.counts[kind])
            line = b'{"type":"MODIFIED","object":%b}\n' % item
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")


def serve(arguments: argparse.Namespace) -> None:
    """The second process."""
    Exchange.served = Served(arguments.pods, arguments.nodes, arguments.gpu_share)
    ThreadingHTTPServer(("127.0.0.1", arguments.serve), Exchange).serve_forever()


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def wait_for(port: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("the made-up API server did not start")


def measure(arguments: argparse.Namespace, port: int) -> None:
    before = peak_mib()
    pipeline = ClusterPipeline(ClusterConfig(api_server=f"http://127.0.0.1:{port}"))
    began, cpu = time.monotonic(), time.process_time()
    pipeline.start()
    while not pipeline.ready():
        time.sleep(0.02)
    first, spent = time.monotonic() - began, time.process_time() - cpu
    began = time.monotonic()
    snapshot = pipeline.take(time.time())
    take = time.monotonic() - began
    series = sum(len(family.samples) for family in snapshot.families)
    share = steady(pipeline, arguments.seconds)
    pipeline.stop()
    say(f"{arguments.pods} pods ({arguments.gpu_share:.0%} with GPUs), {arguments.nodes} nodes")
    say(f"first sync      {first:7.1f} s    budget {BUDGET_SECONDS:.0f} s   (CPU {spent:.1f} s)")
    say(f"peak memory     {peak_mib():7.0f} MiB  budget {BUDGET_MIB:.0f} MiB (after imports {before:.0f} MiB)")
    say(f"one pass        {take:7.2f} s    {series} series")
    if arguments.seconds:
        say(f"CPU at {CHANGES_PER_SECOND}/s    {share:7.1%}      budget {BUDGET_CPU:.0%}, a pass every 30 s included")


def steady(pipeline: ClusterPipeline, seconds: float) -> float:
    """Share of a core while objects change and a pass is taken every 30 seconds."""
    began, cpu = time.monotonic(), time.process_time()
    while (left := began + seconds - time.monotonic()) > 0:
        time.sleep(min(30.0, left))
        pipeline.take(time.time())
    return (time.process_time() - cpu) / max(time.monotonic() - began, 0.001)


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--gpu-share", type=float, default=0.2)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--serve", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments)
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    child = subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--serve", str(port)])
    try:
        wait_for(port)
        measure(arguments, port)
    finally:
        child.kill()
        child.wait()


if __name__ == "__main__":
    main()
