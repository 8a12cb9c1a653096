"""One control plane for all tests of the folder, with the shipped manifests, and watchers of it."""

import pytest

from tests.deploy.running import running
from tests.e2e.control_plane.plane import control_plane
from tests.e2e.control_plane.shipped import apply_rights


@pytest.fixture(scope="session")
def plane(tmp_path_factory):
    """etcd, API server, scheduler and controllers, with the rights that the manifests give."""
    others = ("kube-scheduler", "kube-controller-manager")
    with control_plane(tmp_path_factory.mktemp("plane"), *others) as started:
        apply_rights(started)
        yield started


@pytest.fixture
def watcher(plane):
    """The watcher as a program, with the token of its service account; ready."""
    kubeconfig = plane.kubeconfig("watcher", plane.token("gpugauge", "gpugauge-cluster"))
    arguments = ["cluster", "--kubeconfig", kubeconfig, "--address", "127.0.0.1:0", "--interval", "1"]
    with running(arguments, {}) as started:
        started.until("/readyz")
        yield started
