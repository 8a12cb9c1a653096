"""Flags and environment variables have the names and meanings that they have in dcgm-exporter's manifests."""

import pytest

from exporter.cli import parse
from exporter.config import ConfigError
from exporter.node.config import node_config


def config(*argv, **environment):
    return node_config(parse(argv, environment), environment)


def test_without_arguments_the_node_exporter_is_meant():
    found = config()
    assert (found.web.address, found.source, found.interval, found.kubernetes) == (":9400", "auto", 30.0, False)
    assert found.remote is None
    assert found.kubelet_socket == "/var/lib/kubelet/pod-resources/kubelet.sock"


def test_the_environment_of_an_operator_manifest_is_understood(tmp_path):
    counters = tmp_path / "dcp-metrics-included.csv"
    counters.write_text("")
    found = config(
        DCGM_EXPORTER_LISTEN=":9500",
        DCGM_EXPORTER_KUBERNETES="true",
        DCGM_EXPORTER_COLLECTORS=str(counters),
        DCGM_EXPORTER_INTERVAL="10000",
        DCGM_REMOTE_HOSTENGINE_INFO="localhost:5555",
        DCGM_POD_RESOURCES_KUBELET_SOCKET="/run/k.sock",
        NVIDIA_RESOURCE_NAMES="nvidia.com/gpu.shared, example.com/gpu",
        NODE_NAME="gpu-7",
    )
    assert (found.web.address, found.kubernetes, found.interval) == (":9500", True, 10.0)
    assert (found.collectors, found.remote, found.kubelet_socket) == (counters, "localhost:5555", "/run/k.sock")
    assert found.resource_names == ("nvidia.com/gpu.shared", "example.com/gpu")
    assert found.style.hostname == "gpu-7"


def test_a_flag_wins_over_its_variable():
    assert config("-a", ":1", "-c", "5000", DCGM_EXPORTER_LISTEN=":2", DCGM_EXPORTER_INTERVAL="1").interval == 5.0
    assert config("--kubernetes=false", DCGM_EXPORTER_KUBERNETES="1").kubernetes is False
    assert config("-k").kubernetes is True


def test_flags_that_are_ignored_for_compatibility_are_accepted_and_reported():
    assert config("--fake-gpus", "-d", "f", "--kubernetes-virtual-gpus=true").ignored_flags == (
        "--fake-gpus",
        "-d",
        "--kubernetes-virtual-gpus",
    )


@pytest.mark.parametrize(
    ("argv", "environment", "message"),
    [
        (["-c", "0"], {}, "--collect-interval 0 is outside 100..3600000 milliseconds"),
        (["-c", "fast"], {}, "--collect-interval 'fast' is not a whole number of milliseconds"),
        (["frobnicate"], {}, "unknown command 'frobnicate'; there are node, cluster"),
        (["--nonsense"], {}, "unrecognized arguments: --nonsense; see gpugauge node --help"),
        (["--kubernetes=perhaps"], {}, "'perhaps' is neither true nor false"),
        ([], {"DCGM_EXPORTER_KUBERNETES": "yes"}, "DCGM_EXPORTER_KUBERNETES: 'yes' is neither true nor false"),
    ],
)
def test_a_bad_value_gets_one_message(argv, environment, message):
    with pytest.raises(ConfigError) as error:
        config(*argv, **environment)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_hostname_options():
    assert config("--no-hostname").style.hostname_label == "none"
    assert config("--hostname-label=both").style.hostname_label == "both"
