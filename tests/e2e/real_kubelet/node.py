"""A real kubelet with containerd, static pods and device plugins, in a folder: no API server, no network."""

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.exporter.node.exporter_process import children
from tests.waiting import until

HERE = Path(__file__).parent
IMAGE = "gpugauge.test/pause:1"
KUBELET_FOLDER = Path("/var/lib/kubelet")
CGROUPS = Path("/sys/fs/cgroup")
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "runc", "ip", "unshare", "cc")
SEARCHED = ":".join([os.environ.get("GPUGAUGE_CONTAINERD", ""), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
"""GPUGAUGE_CONTAINERD names the folders of containerd and runc where these are not on PATH."""
START_SECONDS = 120.0

CONTAINERD = """\
version = 2
root = "{folder}/containerd/root"
state = "{folder}/containerd/state"
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{image}"
restrict_oom_score_adj = true
disable_tcp_service = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
"""
KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "failCgroupV1": False,
    "cgroupDriver": "cgroupfs",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "enforceNodeAllocatable": [],
    "failSwapOn": False,
    "oomScoreAdj": 0,
    "fileCheckFrequency": "1s",
    "evictionHard": dict.fromkeys(("memory.available", "nodefs.available", "imagefs.available"), "0%"),
}


def kubelet_program() -> str | None:
    """The kubelet: what GPUGAUGE_KUBELET names, else the one on PATH."""
    return os.environ.get("GPUGAUGE_KUBELET") or shutil.which("kubelet")


def version() -> str:
    """What the kubelet calls itself, such as `Kubernetes v1.37.2`."""
    return subprocess.run(
        (str(kubelet_program()), "--version"), capture_output=True, text=True, check=True
    ).stdout.strip()


def why_not() -> str | None:
    """Why no kubelet can be run here; None where it can."""
    if kubelet_program() is None:
        return "no kubelet on PATH, and GPUGAUGE_KUBELET names none"
    missing = [name for name in PROGRAMS if shutil.which(name, path=SEARCHED) is None]
    if missing:
        return f"not on PATH, nor in the folders that GPUGAUGE_CONTAINERD names: {', '.join(missing)}"
    if os.geteuid() != 0:
        return "a kubelet needs root"
    return "a kubelet runs on this machine" if list(_cgroups()) else None


def container(name: str, *words: str, restart: str = "", **devices: int) -> dict[str, Any]:
    """A container with so many devices of each resource, whose names are `gpu` and `shared`."""
    names = {"gpu": "nvidia.com/gpu", "shared": "nvidia.com/gpu.shared"}
    limits = {names[resource]: number for resource, number in devices.items()}
    spec = {"name": name, "image": IMAGE, "imagePullPolicy": "Never", "args": list(words)}
    return spec | {"resources": {"limits": limits}} | ({"restartPolicy": restart} if restart else {})


def pod(
    name: str, *containers: Mapping[str, Any], init: Sequence[Mapping[str, Any]] = (), restart: str = "Always"
) -> dict[str, Any]:
    """A static pod. Without the network of the host it would need a plugin for one."""
    spec = {"containers": containers, "initContainers": init, "restartPolicy": restart, "hostNetwork": True}
    head = {"name": name, "namespace": "team"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec | {"terminationGracePeriodSeconds": 1}}


class RealNode:
    """The node in its folder, whose path must be short: sockets are in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plugins = folder / "kubelet/device-plugins"
        self.socket = folder / "kubelet/pod-resources/kubelet.sock"
        for name in ("kubelet", "pods"):
            (folder / name).mkdir()
        self._made_folder = not KUBELET_FOLDER.exists()
        KUBELET_FOLDER.mkdir(exist_ok=True)
        self._write()
        program = kubelet_program()
        assert program is not None
        namespaces = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child")
        environment = {**os.environ, "PATH": SEARCHED}
        self._process = subprocess.Popen((*namespaces, str(HERE / "start.sh"), str(folder), program), env=environment)

    def wait(self) -> None:
        """Wait until the kubelet accepts device plugins and calls."""
        try:
            until(lambda: (self.plugins / "kubelet.sock").exists() and self.socket.exists(), START_SECONDS)
        except AssertionError as error:
            raise AssertionError(self.logs()) from error

    def run(self, *pods: Mapping[str, Any]) -> None:
        """Run these static pods."""
        for each in pods:
            (self.folder / "pods" / f"{each['metadata']['name']}.json").write_text(json.dumps(each))

    def kill_kubelet(self) -> None:
        """Kill the kubelet, which is started again."""
        os.kill(self._kubelet(), signal.SIGKILL)

    def logs(self) -> str:
        """The ends of what containerd and the kubelet have logged."""
        files = (self.folder / f"{name}.log" for name in ("containerd", "kubelet"))
        return "\n".join(file.read_text()[-3000:] for file in files if file.exists())

    def close(self) -> None:
        """End everything and remove what is outside of the folder."""
        self._process.kill()
        self._process.wait()
        until(lambda: not any(map(_remove, _cgroups())))
        if self._made_folder:
            KUBELET_FOLDER.rmdir()

    def _kubelet(self) -> int:
        (script,) = children(self._process.pid)
        found = [pid for pid in children(script) if "--hostname-override" in _command(pid)]
        return found[0]

    def _write(self) -> None:
        (self.folder / "containerd.toml").write_text(CONTAINERD.format(folder=self.folder, image=IMAGE))
        runtime = {"containerRuntimeEndpoint": f"unix://{self.folder}/containerd.sock"}
        settings = KUBELET | runtime | {"staticPodPath": f"{self.folder}/pods"}
        (self.folder / "kubelet.yaml").write_text(json.dumps(settings))  # JSON is YAML
        program = self.folder / "pause"
        subprocess.run(("cc", "-static", "-Os", "-o", str(program), str(HERE / "pause.c")), check=True)
        (self.folder / "image.tar").write_bytes(_image(program.read_bytes()))


def _image(program: bytes) -> bytes:
    """An image with this program alone, as `docker save` writes one."""
    layer = _tar({"pause": program})
    digest = hashlib.sha256(layer).hexdigest()
    settings = {
        "architecture": os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64"),
        "os": "linux",
        "config": {"Entrypoint": ["/pause"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    files = {"config.json": json.dumps(settings).encode(), "layer.tar": layer}
    return _tar(files | {"manifest.json": json.dumps(manifest).encode()})


def _tar(files: Mapping[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return written.getvalue()


def _cgroups() -> Iterator[Path]:
    """The cgroups of a kubelet's pods: one in each hierarchy of version 1."""
    yield from (path for path in (CGROUPS / "kubepods", *CGROUPS.glob("*/kubepods")) if path.exists())


def _remove(cgroup: Path) -> bool:
    """Remove a cgroup with those in it. Returns whether it is still there: its processes may not have ended yet."""
    for folder, names, _ in os.walk(cgroup, topdown=False):
        for name in names:
            _try_to_remove(Path(folder) / name)
    _try_to_remove(cgroup)
    return cgroup.exists()


def _try_to_remove(cgroup: Path) -> None:
    try:
        cgroup.rmdir()
    except OSError:
        return


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\0", " ")
