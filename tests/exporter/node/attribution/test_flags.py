"""The flags of attribution that dcgm-exporter does not have."""

import re

import pytest

from exporter.cli import parse
from exporter.config import ConfigError
from exporter.node.config import node_config


def config(*argv):
    return node_config(parse(argv, {}), {})


@pytest.mark.parametrize("flag", ["--nvidia-resource-names", "--index-resource-names"])
@pytest.mark.parametrize("name", ["*", "**", "*/*"])
def test_a_resource_name_that_would_mean_every_resource_is_rejected(flag, name):
    with pytest.raises(ConfigError, match=re.escape(f"{name!r} would mean every resource")):
        config("--kubernetes", f"{flag}=nvidia.com/x,{name}")


def test_monitoring_namespaces_are_a_flag_that_has_ours_and_that_of_the_gpu_operator():
    assert config().monitoring_namespaces == ("gpu-operator", "gpugauge")
    assert config("--monitoring-namespaces", "dra,watch").monitoring_namespaces == ("dra", "watch")


def test_index_resources_and_reservation_namespaces_are_flags():
    found = config("--index-resource-names", "a.com/*,b.com/gpu", "--reservation-namespaces", "x,y")
    assert (found.index_resources, found.reservation_namespaces) == (("a.com/*", "b.com/gpu"), ("x", "y"))
    assert config().reservation_namespaces == ("kai-resource-reservation", "runai-reservation")


@pytest.mark.parametrize(
    ("argv", "socket"),
    [
        ((), "/var/lib/kubelet/pod-resources/kubelet.sock"),
        (("--kubelet-root", "/var/lib/k0s/kubelet/"), "/var/lib/k0s/kubelet/pod-resources/kubelet.sock"),
        (("--kubelet-root", "/x", "--pod-resources-kubelet-socket", "/run/k.sock"), "/run/k.sock"),
    ],
)
def test_the_socket_is_in_the_folder_of_the_kubelet_unless_another_one_is_named(argv, socket):
    assert config(*argv).kubelet_socket == socket
