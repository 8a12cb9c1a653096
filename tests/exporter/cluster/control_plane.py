"""A real kube-apiserver with its etcd, started for tests on a machine that has both."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import trustme

ADMIN, WATCHER, TENANT = "token-of-the-admin", "token-of-the-watcher", "token-of-the-tenant"
READY_SECONDS = 120.0


def binaries():
    """(kube-apiserver, etcd), each None where it cannot be found on PATH or through the environment."""
    names = ("kube-apiserver", "GPUGAUGE_KUBE_APISERVER"), ("etcd", "GPUGAUGE_ETCD")
    return tuple(shutil.which(os.environ.get(variable, name)) for name, variable in names)


@contextmanager
def reserved_port():
    """A port that the kernel gives to no other process.

    The socket never listens, so a process that sets SO_REUSEADDR can bind the port too (Linux); Go's listeners do.
    """
    with socket.socket() as reservation:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind(("127.0.0.1", 0))
        yield reservation.getsockname()[1]


@contextmanager
def running_process(arguments, log):
    with log.open("wb") as out:
        process = subprocess.Popen(arguments, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class ControlPlane:
    """Sends requests to a running API server as its administrator."""

    def __init__(self, port, folder):
        self.url = f"https://127.0.0.1:{port}"
        self.ca = folder / "ca.pem"
        self._context = ssl.create_default_context(cafile=self.ca)

    def call(self, method, path, body=None, kind="application/json"):
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {ADMIN}", "Content-Type": kind},
            method=method,
        )
        with urllib.request.urlopen(request, context=self._context, timeout=30) as answer:
            return json.load(answer) if "json" in answer.headers.get("Content-Type", "") else answer.read()

    def create(self, path, given):
        """Create an object, then set the status that it was given with: the API server ignores it at creation."""
        status = given.get("status")
        made = self.call("POST", path, given)
        if status:
            self.patch(f"{path}/{made['metadata']['name']}/status", {"status": status})
        return made

    def patch(self, path, change):
        return self.call("PATCH", path, change, "application/merge-patch+json")

    def kubeconfig(self, path, token):
        cluster = {"server": self.url, "certificate-authority": str(self.ca)}
        text = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
        }
        path.write_text(json.dumps(text))
        return str(path)

    def wait_ready(self, process, log):
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end and process.poll() is None:
            try:
                self.call("GET", "/readyz")
                self.call("GET", "/api/v1/namespaces/default")
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
            else:
                return
        raise AssertionError("the API server did not become ready:\n" + log.read_text()[-3000:])


@contextmanager
def running(folder: Path):
    """A control plane with RBAC, three users: an administrator; a watcher and a tenant without any rights yet."""
    apiserver, etcd = binaries()
    certificates(folder)
    (folder / "tokens.csv").write_text(f"{ADMIN},admin,1,system:masters\n{WATCHER},watcher,2\n{TENANT},tenant,3\n")
    with ExitStack() as stack:
        client, peer, port = (stack.enter_context(reserved_port()) for _ in range(3))
        stack.enter_context(running_process(etcd_arguments(etcd, folder, client, peer), folder / "etcd.log"))
        log = folder / "apiserver.log"
        process = stack.enter_context(running_process(apiserver_arguments(apiserver, folder, client, port), log))
        plane = ControlPlane(port, folder)
        plane.wait_ready(process, log)
        yield plane


def certificates(folder):
    authority = trustme.CA()
    served = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    served.private_key_pem.write_to_path(folder / "key.pem")
    served.cert_chain_pems[0].write_to_path(folder / "cert.pem")


def etcd_arguments(binary, folder, client, peer):
    return [
        binary,
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
    ]


def apiserver_arguments(binary, folder, etcd, port):
    return [
        binary,
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--tls-cert-file={folder / 'cert.pem'}",
        f"--tls-private-key-file={folder / 'key.pem'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'key.pem'}",
        f"--service-account-signing-key-file={folder / 'key.pem'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        f"--cert-dir={folder}",
    ]
