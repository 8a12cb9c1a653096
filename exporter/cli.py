"""The command line: the flags of each command, and the environment variables that give their defaults."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from exporter import VERSION
from exporter.config import DEFAULT_INTERVAL_SECONDS, ConfigError, parse_bool

Arguments = argparse.Namespace
DEFAULT_KUBELET_SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
DEFAULT_INTERVAL_MS = f"{DEFAULT_INTERVAL_SECONDS * 1000:.0f}"

# Flags of dcgm-exporter that are ignored for compatibility, so that a manifest can stay as it is: first those with a
# value and their short forms, then Boolean ones.
IGNORED_FLAGS = {
    "--devices": "-d", "--switch-devices": "-s", "--cpu-devices": "-p", "--configmap-data": "-m",
    "--xid-count-window-size": "-x", "--clock-events-count-window-size": None, "--dcgm-log-level": None,
    "--kubernetes-gpu-id-type": None, "--kubernetes-pod-label-allowlist-regex": None,
    "--hpc-job-mapping-dir": None, "--gpu-bind-unbind-poll-interval": None, "--dump-directory": None,
    "--dump-retention": None,
}  # fmt: skip
IGNORED_BOOLEAN_FLAGS = (
    "--kubernetes-enable-pod-labels", "--kubernetes-enable-pod-uid", "--fake-gpus", "--enable-dcgm-log",
    "--kubernetes-virtual-gpus", "--kubernetes-enable-dra", "--disable-startup-validate",
    "--enable-gpu-bind-unbind-watch", "--dump-enabled", "--dump-compression", "--enable-pprof",
)  # fmt: skip


class EnvironmentDefaults:
    """The environment variables that give flags their defaults."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str, default: str) -> str:
        """The variable's value, or `default` where it is not set or empty."""
        return self._values.get(name) or default

    def boolean(self, name: str) -> bool:
        """The variable as a Boolean; false where it is not set. Raises ConfigError, which names the variable."""
        try:
            return parse_bool(self._values.get(name, ""))
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None


class CommandParser(argparse.ArgumentParser):
    """An argument parser that reports an error as ConfigError, with one message."""

    def error(self, message: str) -> Any:
        raise ConfigError(f"{message}; see {self.prog} --help")


class _IgnoredFlag(argparse.Action):
    """Records which flags that are ignored for compatibility were given."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        _values: Any,
        option: str | None = None,
    ) -> None:
        namespace.ignored_flags = [*(namespace.ignored_flags or ()), option]


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> argparse.Namespace:
    """Parse the arguments of the chosen command; without a command, `node` is meant. Raises ConfigError."""
    command, rest = ("node", list(argv))
    if argv and argv[0] in COMMANDS:
        command, rest = argv[0], list(argv[1:])
    elif argv and not argv[0].startswith("-"):
        raise ConfigError(f"unknown command {argv[0]!r}; there are {', '.join(COMMANDS)}")
    parser = PARSERS[command](EnvironmentDefaults(environment))
    arguments = parser.parse_args(rest)
    arguments.command = command
    return arguments


def _parser(command: str, about: str) -> CommandParser:
    parser = CommandParser(
        prog=f"gpugauge {command}",
        description=about,
        allow_abbrev=False,
        epilog=f"Commands: {', '.join(COMMANDS)}; without one, node is meant.",
    )
    parser.add_argument("--version", "-v", action="version", version=f"gpugauge {VERSION}")
    return parser


def _bool(text: str) -> bool:
    try:
        return parse_bool(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _boolean_flag(group: argparse._ArgumentGroup, flags: tuple[str, ...], *, default: bool, help: str = "") -> None:
    """Add a Boolean flag that may be given alone or, as Go programs accept it, as `--flag=true`."""
    group.add_argument(*flags, nargs="?", const=True, type=_bool, default=default, metavar="BOOL", help=help)


def _serving(parser: CommandParser, env: EnvironmentDefaults, address: str) -> None:
    serving = parser.add_argument_group("serving")
    serving.add_argument(
        "--address", "-a", default=env.text("DCGM_EXPORTER_LISTEN", address), help=f"listen address (default {address})"
    )
    serving.add_argument(
        "--web-config-file",
        default=env.text("DCGM_EXPORTER_WEB_CONFIG_FILE", ""),
        help="web configuration file of Prometheus exporters: TLS and headers",
    )
    _boolean_flag(
        serving,
        ("--web-systemd-socket",),
        default=env.boolean("DCGM_EXPORTER_SYSTEMD_SOCKET"),
        help="serve on the socket that systemd passes",
    )
    logs = parser.add_argument_group("log")
    logs.add_argument("--log-format", choices=("text", "json"), default=env.text("DCGM_EXPORTER_LOG_FORMAT", "text"))
    _boolean_flag(logs, ("--debug",), default=env.boolean("DCGM_EXPORTER_DEBUG"))


def _resource_names(group: argparse._ArgumentGroup, env: EnvironmentDefaults) -> None:
    group.add_argument(
        "--nvidia-resource-names",
        default=env.text("NVIDIA_RESOURCE_NAMES", ""),
        metavar="NAMES",
        help="further resource names that mean GPUs",
    )


def node_parser(env: EnvironmentDefaults) -> CommandParser:
    """Make the parser of the node exporter's flags."""
    parser = _parser("node", "Serve GPU metrics of this node, attributed to the pods that its GPUs are allocated to.")
    _serving(parser, env, ":9400")
    _reading(parser, env)
    _attribution(parser, env)
    _labels(parser, env)
    parser.set_defaults(ignored_flags=None)
    for flag, short in IGNORED_FLAGS.items():
        parser.add_argument(flag, *filter(None, (short,)), action=_IgnoredFlag, help=argparse.SUPPRESS)
    for flag in IGNORED_BOOLEAN_FLAGS:
        parser.add_argument(flag, nargs="?", action=_IgnoredFlag, help=argparse.SUPPRESS)
    return parser


def _reading(parser: CommandParser, env: EnvironmentDefaults) -> None:
    reading = parser.add_argument_group("reading devices")
    reading.add_argument(
        "--source",
        choices=("auto", "dcgm", "nvml", "simulated"),
        default=env.text("GPUGAUGE_SOURCE", "auto"),
        help="auto: a reachable host engine, else an embedded one, else NVML; never simulated",
    )
    reading.add_argument(
        "--remote-hostengine-info",
        "-r",
        default=None,
        metavar="ADDRESS",
        help="host engine as host:port, tcp://host:port or unix:///path",
    )
    reading.add_argument(
        "--collect-interval",
        "-c",
        default=env.text("DCGM_EXPORTER_INTERVAL", DEFAULT_INTERVAL_MS),
        metavar="MS",
        help=f"milliseconds between collections (default {DEFAULT_INTERVAL_MS})",
    )
    reading.add_argument(
        "--collectors",
        "-f",
        default=env.text("DCGM_EXPORTER_COLLECTORS", ""),
        metavar="FILE",
        help="counters file: name, type, help",
    )
    reading.add_argument("--expected-gpus", type=int, default=0, metavar="N", help="how many GPUs the node should have")
    reading.add_argument(
        "--libdcgm",
        default=env.text("GPUGAUGE_LIBDCGM", ""),
        metavar="FILE",
        help="libdcgm.so.4 or .so.3 where the loader does not find it",
    )
    reading.add_argument(
        "--scenario",
        default=env.text("GPUGAUGE_SCENARIO", ""),
        metavar="FILE",
        help="scenario of --source simulated: a built-in name or a file",
    )


def _attribution(parser: CommandParser, env: EnvironmentDefaults) -> None:
    attribution = parser.add_argument_group("attribution")
    _boolean_flag(
        attribution,
        ("--kubernetes", "-k"),
        default=env.boolean("DCGM_EXPORTER_KUBERNETES"),
        help="attribute devices to pods",
    )
    attribution.add_argument(
        "--pod-resources-kubelet-socket",
        default=env.text("DCGM_POD_RESOURCES_KUBELET_SOCKET", DEFAULT_KUBELET_SOCKET),
        metavar="PATH",
    )
    _resource_names(attribution, env)


def _labels(parser: CommandParser, env: EnvironmentDefaults) -> None:
    labels = parser.add_argument_group("labels of DCGM-named series")
    labels.add_argument(
        "--hostname-label",
        choices=("hostname", "Hostname", "both", "none"),
        default=env.text("GPUGAUGE_HOSTNAME_LABEL", "hostname"),
    )
    _boolean_flag(labels, ("--no-hostname", "-n"), default=env.boolean("DCGM_EXPORTER_NO_HOSTNAME"))
    labels.add_argument(
        "--allocation-labels", choices=("pod", "none"), default=env.text("GPUGAUGE_ALLOCATION_LABELS", "pod")
    )
    _boolean_flag(labels, ("--use-old-namespace", "-o"), default=env.boolean("DCGM_EXPORTER_USE_OLD_NAMESPACE"))
    _boolean_flag(
        labels,
        ("--replace-blanks-in-model-name", "--rbmn"),
        default=env.boolean("DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME"),
    )


def cluster_parser(env: EnvironmentDefaults) -> CommandParser:
    """Make the parser of the cluster watcher's flags."""
    parser = _parser("cluster", "Serve metrics of the cluster: pending GPU pods and their reasons, free capacity.")
    _serving(parser, env, ":9410")
    api = parser.add_argument_group("API server")
    api.add_argument(
        "--kubeconfig",
        default=env.text("KUBECONFIG", ""),
        metavar="FILE",
        help="without it, the pod's service account is used",
    )
    api.add_argument("--context", default="", help="context of the kubeconfig")
    api.add_argument("--api-server", default="", metavar="URL", help="a plain address without authentication")
    _resource_names(api, env)
    parser.add_argument(
        "--interval",
        type=float,
        default=DEFAULT_INTERVAL_SECONDS,
        metavar="SECONDS",
        help="seconds between collections",
    )
    return parser


def metrics_parser(_env: EnvironmentDefaults) -> CommandParser:
    """Make the parser of `gpugauge metrics`."""
    return _parser("metrics", "Print every metric that the programs can expose, as Markdown.")


PARSERS = {"node": node_parser, "cluster": cluster_parser, "metrics": metrics_parser}
COMMANDS = tuple(PARSERS)
