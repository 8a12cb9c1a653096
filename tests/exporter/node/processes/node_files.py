"""A folder like /proc and one like /var/log/containers, with the processes and containers of a test."""

from pathlib import Path

from exporter.node.processes.proc_folder import HOST_NAMESPACE

INIT = "0::/init.scope\n"
HOST = "0::/system.slice/display.service\n"


def uid(number: int) -> str:
    return f"{number:08x}-1111-4222-8333-444444444444"


def container_id(number: int) -> str:
    return f"{number:064x}"


def group(pod: int, container: int) -> str:
    """The control group of a container of a pod: containerd with systemd."""
    plain = uid(pod).replace("-", "_")
    return f"0::/kubepods.slice/kubepods-pod{plain}.slice/cri-containerd-{container_id(container)}.scope\n"


class ProcFiles:
    """A folder like /proc in which process 1 and the exporter's own run."""

    def __init__(self, folder: Path, namespace: str = HOST_NAMESPACE, own: int = 77) -> None:
        self.folder = folder
        self.run(1, INIT)
        self.run(own, INIT)
        (folder / "self").symlink_to(str(own))
        (folder / str(own) / "ns").mkdir()
        (folder / str(own) / "ns" / "pid").symlink_to(namespace)

    def run(self, pid: int, cgroup: str, started: int = 1000, name: str = "python3") -> None:
        own = self.folder / str(pid)
        own.mkdir(parents=True, exist_ok=True)
        fields = " ".join(["0"] * 18)
        (own / "stat").write_text(f"{pid} ({name}) S {fields} {started} 0 0\n")
        (own / "cgroup").write_text(cgroup)

    def end(self, pid: int) -> None:
        for path in (self.folder / str(pid)).iterdir():
            path.unlink()
        (self.folder / str(pid)).rmdir()


def log_link(folder: Path, namespace: str, pod: str, number: int, container: str, id_: int, run: int = 0) -> None:
    """Make the link that the kubelet makes; its target is never there, as where only the links are mounted."""
    target = f"/var/log/pods/{namespace}_{pod}_{uid(number)}/{container}/{run}.log"
    (folder / f"{pod}_{namespace}_{container}-{container_id(id_)}.log").symlink_to(target)
