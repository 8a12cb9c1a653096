"""Flags and environment variables have the names and meanings that they have in dcgm-exporter's manifests."""

import re
import socket
from typing import get_args, get_type_hints

import pytest

from exporter import VERSION
from exporter.cli import parse, usage
from exporter.cluster.config import ClusterConfig, watcher_config
from exporter.config import ConfigError
from exporter.flags.table import COMMANDS
from exporter.node.config import NodeConfig, node_config
from exporter.node.devices.entities.component_selection import ComponentSelections
from exporter.node.devices.entities.selection import Selection
from exporter.node.devices.series.labels import LabelStyle


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
    assert config("-r", "other:1", DCGM_REMOTE_HOSTENGINE_INFO="localhost:5555").remote == "other:1"


def test_a_named_host_engine_is_the_only_source_unless_a_source_is_given_too():
    assert config("-r", "localhost:5555").source == "dcgm"
    assert config(DCGM_REMOTE_HOSTENGINE_INFO="localhost:5555").source == "dcgm"
    assert config("-r", "localhost:5555", "--source", "auto").source == "auto"
    assert config("-r", "localhost:5555", GPUGAUGE_SOURCE="auto").source == "auto"
    assert config("-r", "localhost:5555", "--source=nvml").source == "nvml"
    assert config("-r", "").source == "auto"


@pytest.mark.parametrize("remote", ["gpu-9:5555", "gpu-9", "tcp://gpu-9:5556"])
def test_a_host_engine_of_another_machine_names_the_host_outside_kubernetes(remote):
    found = config("-r", remote, NODE_NAME="here")
    assert found.style.hostname == "gpu-9"
    assert config("-r", remote, "--kubernetes", NODE_NAME="here").style.hostname == "here"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-r", "localhost:5556"),
        ("-r", "127.0.0.2"),
        ("-r", "[::1]:5555"),
        ("-r", "unix:///tmp/nv-hostengine"),
        ("-r", socket.gethostname()),
        ("-r", "gpu-9", "--source", "auto"),
        ("-r", "gpu-9", "--source", "nvml"),
    ],
)
def test_the_gpus_of_this_machine_are_read_under_its_own_name(arguments):
    assert config(*arguments, NODE_NAME="here").style.hostname == "here"
    assert config(*arguments).style.hostname == socket.gethostname()


def test_an_empty_variable_counts_as_not_set():
    assert config(GPUGAUGE_SOURCE="", DCGM_EXPORTER_INTERVAL="", DCGM_EXPORTER_KUBERNETES="").interval == 30.0


def test_flags_and_variables_that_are_ignored_for_compatibility_are_accepted_and_reported_once():
    given = ("--fake-gpus", "--enable-pprof", "--container-labels=true", "--enable-pprof")
    assert config(*given, DCGM_EXPORTER_DUMP_ENABLED="1", KUBERNETES_ENABLE_DRA="").warnings == (
        "ignored for compatibility: --fake-gpus, --enable-pprof, --container-labels, DCGM_EXPORTER_DUMP_ENABLED",
    )


def test_components_are_selected_by_the_flags_and_variables_of_dcgm_exporter():
    assert config().selections == ComponentSelections()
    found = config("-s", "g:0,2+i:1-3", DCGM_EXPORTER_CPU_DEVICES_STR="i:5", DCGM_EXPORTER_OTHER_DEVICES_STR="g")
    assert found.selections == ComponentSelections(Selection((0, 2), (1, 2, 3)), Selection(None, (5,)))
    assert found.warnings == ()


@pytest.mark.parametrize("flag", COMMANDS["node"].ignored, ids=lambda flag: flag.name)
def test_every_flag_that_is_ignored_has_a_variable_that_is_reported(flag):
    assert config(**{flag.variable: "true"}).warnings == (f"ignored for compatibility: {flag.variable}",)


@pytest.mark.parametrize(
    ("argv", "environment", "message"),
    [
        (["-c", "fast"], {}, "-c: 'fast' is not a whole number"),
        (["-c", "3600001"], {}, "-c: 3600001 is more than 3600000 milliseconds"),
        (["--expected-gpus=-1"], {}, "--expected-gpus: -1 is less than 0"),
        (["frobnicate"], {}, "unknown command 'frobnicate'; there are node, cluster"),
        (["--nonsense"], {}, "unknown flag '--nonsense'; see gpugauge node --help"),
        (["---kubernetes"], {}, "unknown flag '---kubernetes'; see gpugauge node --help"),
        (["-c5000"], {}, "unknown flag '-c5000'; see gpugauge node --help"),
        (["-c 5000\n"], {}, "unknown flag '-c 5000\\n'; see gpugauge node --help"),
        (["-c"], {}, "-c needs a value; see gpugauge node --help"),
        (["--kubernetes=perhaps"], {}, "--kubernetes: 'perhaps' is neither true nor false"),
        (["--source", "dcgmm"], {}, "--source: 'dcgmm' is none of auto, dcgm, nvml, simulated"),
        (["-p", "g:3-1"], {}, "-p: 3-1 ends before it begins"),
        ([], {"DCGM_EXPORTER_OTHER_DEVICES_STR": "h"}, "DCGM_EXPORTER_OTHER_DEVICES_STR: 'h' is not f, g, i, g:IDS"),
        (["--source", "dcgmm", "--source", "dcgm"], {}, "--source: 'dcgmm' is none of"),
        (["-a", ":9400\n"], {}, "-a: ':9400\\n' is not an address to listen on"),
        (["cluster", "--interval", "0.5"], {}, "--interval: 0.5 is outside 1..3600 seconds"),
        (["cluster", "--interval", "nan"], {}, "--interval: nan is outside 1..3600 seconds"),
        (["cluster", "--interval", "often"], {}, "--interval: 'often' is not a number"),
        ([], {"DCGM_EXPORTER_KUBERNETES": "yes"}, "DCGM_EXPORTER_KUBERNETES: 'yes' is neither true nor false"),
    ],
)
def test_a_bad_value_gets_one_message(argv, environment, message):
    with pytest.raises(ConfigError) as error:
        config(*argv, **environment)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def with_variables():
    """Each flag of each command that has a variable and does not take every text."""
    for command in COMMANDS.values():
        for flag in command.flags():
            if flag.variable and flag.value.read is not str and not flag.value.adds_up:
                yield pytest.param(command.name, flag, id=f"{command.name}-{flag.variable}")


@pytest.mark.parametrize(("command", "flag"), list(with_variables()))
def test_a_variable_is_checked_as_its_flag_is(command, flag):
    with pytest.raises(ConfigError) as by_variable:
        parse([command], {flag.variable: "host name"})
    with pytest.raises(ConfigError) as by_flag:
        parse([command, f"--{flag.name}=host name"], {})
    assert re.fullmatch(rf"{flag.variable}: ['\"]host name['\"] is .+", str(by_variable.value))
    assert str(by_flag.value) == str(by_variable.value).replace(flag.variable, f"--{flag.name}")


def test_at_least_the_variables_of_choices_numbers_and_addresses_are_checked():
    checked = {each.values[1].variable for each in with_variables()}
    assert checked >= {"GPUGAUGE_SOURCE", "GPUGAUGE_HOSTNAME_LABEL", "DCGM_EXPORTER_INTERVAL", "DCGM_EXPORTER_LISTEN"}
    assert "DCGM_REMOTE_HOSTENGINE_INFO" in checked


def test_the_log_format_may_be_in_capitals():
    assert config(DCGM_EXPORTER_LOG_FORMAT="JSON").log.format == "json"
    assert config("--log-format", "Text").log.format == "text"


@pytest.mark.parametrize("name", ["c", "collect-interval"])
@pytest.mark.parametrize("form", [("-{}", "5000"), ("--{}", "5000"), ("-{}=5000",), ("--{}=5000",)])
def test_flags_may_be_spelled_as_go_programs_take_them(name, form):
    assert config(*(word.format(name) for word in form)).interval == 5.0


def test_a_word_with_one_dash_is_one_flag_and_not_several_letters():
    found = config("-rbmn", "-kubernetes", "--f", "counters.csv", NODE_NAME="n")
    assert (found.style.replace_blanks_in_model, found.remote) == (True, None)
    assert (found.kubernetes, str(found.counters_file), found.warnings) == (True, "counters.csv", ())


def test_repeated_lists_add_up_and_of_other_flags_the_last_one_counts():
    names = ("--nvidia-resource-names", "a.com/x,b.com/y", "-nvidia-resource-names=c.com/z", "-c=1000", "-c=2000")
    found = config(*names, NVIDIA_RESOURCE_NAMES="d.com/w")
    assert (found.resource_names, found.interval) == (("a.com/x", "b.com/y", "c.com/z"), 2.0)


def test_words_after_the_flags_are_ignored_with_a_warning():
    found = config("-k", "false", "-c", "1000", NODE_NAME="n")
    assert (found.kubernetes, found.interval) == (True, 30.0)
    assert found.warnings == ("words after the flags are ignored: false -c 1000",)
    assert config("--", "a b").warnings == ("words after the flags are ignored: 'a b'",)


@pytest.mark.parametrize("first", ["dcgm-exporter", "/usr/bin/dcgm-exporter"])
def test_the_name_of_dcgm_exporter_may_be_the_first_word(first):
    assert config(first, "-c", "1000").interval == 1.0
    assert config(first).warnings == ()


@pytest.mark.parametrize("given", ["99", "3", "0", "-1"])
def test_an_interval_that_is_too_short_is_raised_with_a_warning(given):
    warning = f"a collection interval of {given} ms is too short: 100 ms are used"
    for found in (config("-c", given), config(DCGM_EXPORTER_INTERVAL=given)):
        assert (found.interval, found.warnings) == (0.1, (warning,))
    assert config("-c", "100").warnings == ()


def test_attribution_without_the_name_of_the_node_is_warned_about():
    (warning,) = config("--kubernetes").warnings
    assert warning.startswith(f"NODE_NAME is not set: {socket.gethostname()!r} stands for")
    assert config("--kubernetes", NODE_NAME="gpu-7").warnings == config().warnings == ()


def test_help_and_version_are_printed_whatever_the_variables_are():
    bad = {"GPUGAUGE_SOURCE": "dcgmm"}
    assert parse(["cluster", "-h"], bad).output.startswith("Commands")
    assert parse(["--version"], bad).output == f"gpugauge {VERSION}\n"


@pytest.mark.parametrize("command", list(COMMANDS.values()), ids=list(COMMANDS))
def test_the_help_of_a_command_explains_its_flags_and_hides_ignored_ones(command):
    text = usage(command)
    for flag in command.flags():
        assert re.search(rf"^  {', '.join(flag.names())}( |$)", text, re.MULTILINE)
        assert flag.help
        assert flag.variable in text
    assert not any(flag.names()[0] in text.split() for flag in command.ignored)
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("which", ["xids", "clock_events"])
def test_the_windows_of_dcgm_exporter_are_read_in_milliseconds(which):
    name = {"xids": "XID", "clock_events": "CLOCK_EVENTS"}[which]
    variable = f"DCGM_EXPORTER_{name}_COUNT_WINDOW_SIZE"
    assert getattr(config().windows, which) == 300_000
    assert getattr(config(**{variable: "1000"}).windows, which) == 1000
    with pytest.raises(ConfigError, match=f"{variable}: 0 is less than 1 millisecond"):
        config(**{variable: "0"})


def test_hostname_options():
    assert config("--no-hostname").style.hostname_label == "none"
    assert config("--hostname-label=both").style.hostname_label == "both"


def test_normalized_values_are_exposed_unless_they_are_switched_off():
    assert config().normalized
    assert not config("--normalized-metrics=false").normalized
    assert not config(GPUGAUGE_NORMALIZED_METRICS="false").normalized


@pytest.mark.parametrize(("flag", "owner"), [("source", NodeConfig), ("hostname-label", LabelStyle)])
def test_the_choices_of_flags_are_the_values_that_the_configuration_can_have(flag, owner):
    (row,) = (each for each in COMMANDS["node"].flags() if each.name == flag)
    assert row.value.choices == get_args(get_type_hints(owner)[flag.replace("-", "_")])


def watcher(*argv, **environment):
    return watcher_config(parse(["cluster", *argv], environment), environment).cluster


def test_both_programs_collect_at_the_same_interval_by_default():
    assert watcher("--api-server", "http://a").interval == config().interval == ClusterConfig().interval


def test_a_watcher_that_knows_no_api_server_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for argv, environment in (((), {}), (("--context", "c"), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})):
        with pytest.raises(ConfigError, match=r"^no API server is known: .* --kubeconfig"):
            watcher(*argv, **environment)
    assert watcher(KUBERNETES_SERVICE_HOST="10.0.0.1").kubeconfig is None
    usual = tmp_path / ".kube/config"
    usual.parent.mkdir()
    usual.touch()
    assert watcher("--context", "c").context == "c"


def test_a_kubeconfig_that_cannot_be_found_is_an_error(tmp_path):
    one, other = str(tmp_path / "one"), tmp_path / "other"
    for argv, environment in ((("--kubeconfig", one), {}), ((), {"KUBECONFIG": one})):
        with pytest.raises(ConfigError, match=f"^the kubeconfig '{one}' cannot be found$"):
            watcher(*argv, **environment, KUBERNETES_SERVICE_HOST="10.0.0.1")
    other.touch()
    assert watcher("--kubeconfig", f"{one}:{other}").kubeconfig == f"{one}:{other}"


@pytest.mark.parametrize(
    ("text", "lease"),
    [("", None), ("gpugauge/gpugauge-cluster", ("gpugauge", "gpugauge-cluster")), ("a/b.c-d.e", ("a", "b.c-d.e"))],
)
def test_a_lease_is_a_namespace_and_a_name(text, lease):
    given = ("cluster", "--api-server=http://127.0.0.1:1")
    assert watcher_config(parse((*given, "--lease", text), {}), {}).cluster.lease == lease
    assert watcher_config(parse(given, {"GPUGAUGE_LEASE": text}), {}).cluster.lease == lease


@pytest.mark.parametrize(
    "text", ["x", "/x", "x/", "a/b/c", "A/b", "a/../b", "a.b/c", "a/b?c", "-a/b", "a/" + "b" * 254, "a" * 64 + "/b"]
)
def test_what_is_no_lease_is_one_message_with_flag_and_value(text):
    with pytest.raises(ConfigError, match=r"--lease: .* is not a namespace and a name of an object") as error:
        parse(("cluster", "--lease", text), {})
    assert repr(text) in str(error.value)
