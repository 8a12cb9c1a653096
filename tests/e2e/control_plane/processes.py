"""The processes of a real control plane, started for tests on a machine that has their binaries.

etcd and kube-apiserver always; kube-scheduler and kube-controller-manager where a test asks for them. Each is found on
PATH or named by a variable.
"""

import json
import os
import shutil
import socket
import subprocess
from contextlib import contextmanager

import pytest
import trustme

ADMIN, TENANT = "token-of-the-admin", "token-of-the-tenant"
VARIABLES = {
    "etcd": "GPUGAUGE_ETCD",
    "kube-apiserver": "GPUGAUGE_KUBE_APISERVER",
    "kube-scheduler": "GPUGAUGE_KUBE_SCHEDULER",
    "kube-controller-manager": "GPUGAUGE_KUBE_CONTROLLER_MANAGER",
}
STOP_SECONDS = 20
GATES = "--feature-gates=GenericWorkload=true,TaintTolerationComparisonOperators=true"
CONTROLLERS = (
    "deployment-controller",
    "ephemeral-volume-controller",
    "job-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "resourcequota-controller",
    "statefulset-controller",
)
"""Those that make pods, claims and the use of quotas. Without the others nothing changes what a test made."""


def found(name):
    """The binary of a component, None where it is neither on PATH nor named by its variable."""
    return shutil.which(os.environ.get(VARIABLES[name], name))


def needs(*names):
    """Marks a module whose tests need these components: skipped with the reason where one is missing."""
    missing = [name for name in names if found(name) is None]
    variables = " and ".join(VARIABLES[name] for name in missing)
    reason = f"not on PATH: {', '.join(missing)} ({variables} may name them)"
    return [pytest.mark.e2e, pytest.mark.skipif(bool(missing), reason=reason)]


@contextmanager
def reserved_port():
    """A port that the kernel gives to no other process.

    The socket never listens, so a process that sets SO_REUSEADDR can bind the port too (Linux); Go's listeners do.
    """
    with socket.socket() as reservation:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind(("127.0.0.1", 0))
        yield reservation.getsockname()[1]


class Component:
    """A process of the control plane, which can be killed and started again with the same arguments."""

    def __init__(self, arguments, log):
        self.log = log
        self._arguments = arguments
        self.start()

    def start(self):
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(self._arguments, stdout=out, stderr=subprocess.STDOUT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def ended(self):
        return self.process.poll() is not None


@contextmanager
def running(name, arguments, folder):
    """A component with these arguments, whose log is in the folder."""
    component = Component([found(name), *arguments], folder / f"{name}.log")
    try:
        yield component
    finally:
        component.stop()


def certificates(folder):
    authority = trustme.CA()
    served = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    served.private_key_pem.write_to_path(folder / "key.pem")
    served.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    (folder / "tokens.csv").write_text(f"{ADMIN},admin,1,system:masters\n{TENANT},tenant,2\n")


def etcd_arguments(folder, client, peer):
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
    ]


def apiserver_arguments(folder, etcd, port):
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # it rejects loopback addresses
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--tls-cert-file={folder / 'cert.pem'}",
        f"--tls-private-key-file={folder / 'key.pem'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'key.pem'}",
        f"--service-account-signing-key-file={folder / 'key.pem'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",  # no controller makes the account that it adds to pods
        "--runtime-config=scheduling.k8s.io/v1beta1=true",
        GATES,
        f"--cert-dir={folder}",
    ]


def scheduler_arguments(folder, kubeconfig, extender_port):
    """`extender_port` is where nobody listens: it filters the nodes of pods that ask for one resource."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 1000, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "extenders": [
            {
                "urlPrefix": f"http://127.0.0.1:{extender_port}",
                "filterVerb": "filter",
                "enableHTTPS": False,
                "managedResources": [{"name": "example.com/extended"}],
            }
        ],
    }
    path = folder / "scheduler.json"
    path.write_text(json.dumps(config))
    return [f"--config={path}", "--secure-port=0", GATES]


def manager_arguments(kubeconfig):
    return [
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
        GATES,
    ]
