"""The image, built from the Dockerfile on a base image that is made here, and programs that run in it.

The base image of the Dockerfile comes from a registry, which a build machine may not reach: in its place stands a
Debian with Python, made by mmdebstrap of the machine's own package sources.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.deploy.manifests import ROOT
from tests.waiting import until

TOOLS = ("buildah", "mmdebstrap", "unshare", "setpriv")
BASE_PACKAGES = "python3,python3-venv,ca-certificates"
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
PORT = re.compile(r"serving on port (\d+)")


def missing() -> str:
    """Why the image cannot be built here; empty where it can be."""
    if os.geteuid():
        return "building and running the image needs root"
    names = [name for name in TOOLS if shutil.which(name) is None]
    return f"not on PATH: {', '.join(names)}" if names else ""


@dataclass(frozen=True)
class BuiltImage:
    """The image's configuration, and its files in a folder."""

    config: dict[str, Any]
    root: Path

    @property
    def environment(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in self.config["Env"])


@dataclass
class ImageBuild:
    """Builds in a folder of its own, so that no other image of the machine is touched."""

    folder: Path

    def build(self) -> BuiltImage:
        self._base()
        self.build_again("gpugauge")
        described = json.loads(self._buildah("inspect", "--type=image", "gpugauge"))
        container = self._buildah("from", "gpugauge").strip()
        return BuiltImage(described["OCIv1"]["config"], Path(self._buildah("mount", container).strip()))

    def build_again(self, tag: str) -> str:
        """Build the image without what is left of earlier builds, and return the digests of its layers."""
        self._buildah(
            "build", "--isolation=chroot", "--network=host", "--build-arg=PYTHON_IMAGE=localhost/base",
            f"--env=PIP_CERT={AUTHORITIES}", "--timestamp=0", "--no-cache", f"--tag={tag}", str(ROOT),
        )  # fmt: skip
        return str(json.loads(self._buildah("inspect", "--type=image", tag))["OCIv1"]["rootfs"])

    def close(self) -> None:
        """Remove containers and images, which hold half a gigabyte, and their mounts."""
        self._buildah("rm", "--all")
        self._buildah("rmi", "--all", "--force")

    def _base(self) -> None:
        archive = self.folder / "base.tar"
        suite = re.search(r"VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(encoding="utf-8"))[1]
        sources = [*map(str, Path("/etc/apt/sources.list.d").glob("*.sources"))]
        _run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={BASE_PACKAGES}", suite, str(archive), *sources)
        container = self._buildah("from", "scratch").strip()
        self._buildah("add", container, str(archive), "/")
        self._buildah("run", "--isolation=chroot", container, "--", "ln", "-s", "python3", "/usr/bin/python")
        self._buildah("copy", container, AUTHORITIES, AUTHORITIES)
        self._buildah("commit", container, "localhost/base")
        archive.unlink()

    def _buildah(self, *arguments: str) -> str:
        places = f"--root={self.folder}/root", f"--runroot={self.folder}/run", "--storage-driver=overlay"
        return _run("buildah", *places, *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, f"{' '.join(command[:6])}:\n{done.stderr[-4000:]}"
    return done.stdout


@dataclass
class RunningContainer:
    """A process of the image: root file system read-only, no capability, its output as it comes."""

    process: subprocess.Popen[str]
    output: list[str] = field(default_factory=list)

    @property
    def port(self) -> int | None:
        """The port on which it serves; None before it does."""
        found = PORT.search("".join(self.output))
        return int(found[1]) if found else None

    def read(self) -> None:
        self.output.extend(self.process.stdout)


_START = (
    'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && mount -t proc proc "$0/proc" '
    '&& mount -t tmpfs tmpfs "$0/tmp" && mount --bind /dev "$0/dev" && root=$0 && user=$1 && shift 1 && exec chroot '
    '"$root" setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs --bounding-set=-all '
    '--inh-caps=-all "$@"'
)
"""For sh, with the folder of the image as $0, the user id as $1, and the command after it."""


@contextmanager
def running(image: BuiltImage, user: int, *command: str) -> Iterator[RunningContainer]:
    """Run a command in the image as that user, in mount and process namespaces of its own."""
    process = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "sh", "-c", _START, image.root, str(user), *command],
        env=image.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    container = RunningContainer(process)
    reader = threading.Thread(target=container.read, daemon=True)
    reader.start()
    try:
        yield container
    finally:
        # The child is told of its parent's death no more once it has changed its user, so both are killed.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.join(10)
        process.stdout.close()


def serving(container: RunningContainer) -> int:
    """Wait until it serves, and return its port."""
    until(lambda: container.port or container.process.poll() is not None)
    assert container.port, "".join(container.output)
    return container.port
