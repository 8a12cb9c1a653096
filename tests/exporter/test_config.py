"""Flags and environment variables have the names and meanings that they have in dcgm-exporter's manifests."""

from typing import get_args, get_type_hints

import pytest

from exporter.cli import EnvironmentDefaults, node_parser, parse
from exporter.cluster.config import ClusterConfig, watcher_config
from exporter.config import ConfigError
from exporter.node.config import NodeConfig, node_config
from exporter.node.devices.labels import LabelStyle


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
    assert (found.counters_file, found.remote, found.kubelet_socket) == (counters, "localhost:5555", "/run/k.sock")
    assert found.resource_names == ("nvidia.com/gpu.shared", "example.com/gpu")
    assert found.style.hostname == "gpu-7"


def test_a_flag_takes_precedence_over_its_variable():
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


def test_the_choices_of_flags_are_the_values_that_the_configuration_can_have():
    choices = {action.dest: action.choices for action in node_parser(EnvironmentDefaults({}))._actions}
    assert choices["source"] == get_args(get_type_hints(NodeConfig)["source"])
    assert choices["hostname_label"] == get_args(get_type_hints(LabelStyle)["hostname_label"])


def test_both_programs_collect_at_the_same_interval_by_default():
    assert watcher_config(parse(["cluster"], {})).cluster.interval == config().interval == ClusterConfig().interval
