"""The command line: flags of each subcommand, with the environment variables that stand in for them."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from exporter import VERSION
from exporter.config import DEFAULT_SOCKET, ConfigError, truth

Arguments = argparse.Namespace
COMMANDS = ("node", "cluster", "demo")

# Flags of dcgm-exporter that mean nothing here: accepted so that a manifest can stay as it is.
WITHOUT_EFFECT = {
    "--devices": "-d", "--switch-devices": "-s", "--cpu-devices": "-p", "--configmap-data": "-m",
    "--xid-count-window-size": "-x", "--clock-events-count-window-size": None, "--dcgm-log-level": None,
    "--kubernetes-gpu-id-type": None, "--kubernetes-pod-label-allowlist-regex": None,
    "--hpc-job-mapping-dir": None, "--gpu-bind-unbind-poll-interval": None, "--dump-directory": None,
    "--dump-retention": None,
}  # fmt: skip
WITHOUT_EFFECT_SWITCHES = (
    "--kubernetes-enable-pod-labels", "--kubernetes-enable-pod-uid", "--fake-gpus", "--enable-dcgm-log",
    "--kubernetes-virtual-gpus", "--kubernetes-enable-dra", "--disable-startup-validate",
    "--enable-gpu-bind-unbind-watch", "--dump-enabled", "--dump-compression", "--enable-pprof",
)  # fmt: skip


class Environment:
    """Environment defaults for flags; a bad value is a sentence that names the variable."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str, otherwise: str) -> str:
        """The variable's text where it is set and not empty."""
        return self._values.get(name) or otherwise

    def switch(self, name: str) -> bool:
        """The variable as a Boolean, off when unset."""
        try:
            return truth(self._values.get(name, ""))
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one sentence."""

    def error(self, message: str) -> Any:
        raise ConfigError(f"{message}; see {self.prog} --help")


class _Ignored(argparse.Action):
    """Remembers which flags without effect were given."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        _values: Any,
        option: str | None = None,
    ) -> None:
        namespace.without_effect = [*(namespace.without_effect or ()), option]


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> argparse.Namespace:
    """The arguments of the chosen subcommand; without one, `node` is meant and takes bare flags."""
    command, rest = ("node", list(argv))
    if argv and argv[0] in COMMANDS:
        command, rest = argv[0], list(argv[1:])
    elif argv and not argv[0].startswith("-"):
        raise ConfigError(f"unknown command {argv[0]!r}; there are {', '.join(COMMANDS)}")
    parser = PARSERS[command](Environment(environment))
    arguments = parser.parse_args(rest)
    arguments.command = command
    return arguments


def _parser(command: str, about: str) -> Parser:
    parser = Parser(
        prog=f"gpugauge {command}",
        description=about,
        allow_abbrev=False,
        epilog=f"Commands: {', '.join(COMMANDS)}; without one, node is meant.",
    )
    parser.add_argument("--version", "-v", action="version", version=f"gpugauge {VERSION}")
    return parser


def _truth(text: str) -> bool:
    try:
        return truth(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _switch(group: argparse._ArgumentGroup, flags: tuple[str, ...], *, otherwise: bool, help: str = "") -> None:
    """A Boolean flag that may be bare or, as Go programs take it, `--flag=true`."""
    group.add_argument(*flags, nargs="?", const=True, type=_truth, default=otherwise, metavar="BOOL", help=help)


def _serving(parser: Parser, env: Environment, address: str) -> None:
    serving = parser.add_argument_group("serving")
    serving.add_argument(
        "--address", "-a", default=env.text("DCGM_EXPORTER_LISTEN", address), help=f"listen address (default {address})"
    )
    serving.add_argument(
        "--web-config-file",
        default=env.text("DCGM_EXPORTER_WEB_CONFIG_FILE", ""),
        help="TLS settings, as Prometheus exporters have them",
    )
    _switch(
        serving,
        ("--web-systemd-socket",),
        otherwise=env.switch("DCGM_EXPORTER_SYSTEMD_SOCKET"),
        help="serve on the socket systemd hands over",
    )
    logs = parser.add_argument_group("log")
    logs.add_argument("--log-format", choices=("text", "json"), default=env.text("DCGM_EXPORTER_LOG_FORMAT", "text"))
    _switch(logs, ("--debug",), otherwise=env.switch("DCGM_EXPORTER_DEBUG"))


def node_parser(env: Environment) -> Parser:
    """Flags of the node exporter."""
    parser = _parser("node", "Serve GPU metrics of this node, attributed to the pods that hold its GPUs.")
    _serving(parser, env, ":9400")
    _reading(parser, env)
    _attribution(parser, env)
    _labels(parser, env)
    parser.set_defaults(without_effect=None)
    for flag, short in WITHOUT_EFFECT.items():
        parser.add_argument(flag, *filter(None, (short,)), action=_Ignored, help=argparse.SUPPRESS)
    for flag in WITHOUT_EFFECT_SWITCHES:
        parser.add_argument(flag, nargs="?", action=_Ignored, help=argparse.SUPPRESS)
    return parser


def _reading(parser: Parser, env: Environment) -> None:
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
        default=env.text("DCGM_EXPORTER_INTERVAL", "30000"),
        metavar="MS",
        help="milliseconds between passes (default 30000)",
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
        "--scenario", default=env.text("GPUGAUGE_SCENARIO", ""), metavar="FILE", help="what --source simulated plays"
    )


def _attribution(parser: Parser, env: Environment) -> None:
    attribution = parser.add_argument_group("attribution")
    _switch(
        attribution,
        ("--kubernetes", "-k"),
        otherwise=env.switch("DCGM_EXPORTER_KUBERNETES"),
        help="attribute devices to pods",
    )
    attribution.add_argument(
        "--pod-resources-kubelet-socket",
        default=env.text("DCGM_POD_RESOURCES_KUBELET_SOCKET", DEFAULT_SOCKET),
        metavar="PATH",
    )
    attribution.add_argument(
        "--nvidia-resource-names",
        default=env.text("NVIDIA_RESOURCE_NAMES", ""),
        metavar="NAMES",
        help="further resource names that mean GPUs",
    )


def _labels(parser: Parser, env: Environment) -> None:
    labels = parser.add_argument_group("labels of DCGM-named series")
    labels.add_argument(
        "--hostname-label",
        choices=("hostname", "Hostname", "both", "none"),
        default=env.text("GPUGAUGE_HOSTNAME_LABEL", "hostname"),
    )
    _switch(
        labels,
        (
            "--no-hostname",
            "-n",
        ),
        otherwise=env.switch("DCGM_EXPORTER_NO_HOSTNAME"),
        help="",
    )
    labels.add_argument("--holder-labels", choices=("pod", "none"), default=env.text("GPUGAUGE_HOLDER_LABELS", "pod"))
    _switch(
        labels,
        (
            "--use-old-namespace",
            "-o",
        ),
        otherwise=env.switch("DCGM_EXPORTER_USE_OLD_NAMESPACE"),
        help="",
    )
    _switch(
        labels,
        (
            "--replace-blanks-in-model-name",
            "--rbmn",
        ),
        otherwise=env.switch("DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME"),
        help="",
    )


def cluster_parser(env: Environment) -> Parser:
    """Flags of the cluster watcher."""
    parser = _parser("cluster", "Watch the cluster: which GPU pods are pending and why.")
    _serving(parser, env, ":9410")
    api = parser.add_argument_group("API server")
    api.add_argument(
        "--kubeconfig",
        default=env.text("KUBECONFIG", ""),
        metavar="FILE",
        help="without one, the pod's service account",
    )
    api.add_argument("--context", default="", help="context of the kubeconfig")
    api.add_argument("--api-server", default="", metavar="URL", help="a plain address without authentication")
    api.add_argument(
        "--nvidia-resource-names",
        default=env.text("NVIDIA_RESOURCE_NAMES", ""),
        metavar="NAMES",
        help="further resource names that mean GPUs",
    )
    parser.add_argument("--interval", type=float, default=30.0, metavar="SECONDS", help="seconds between passes")
    return parser


def demo_parser(_env: Environment) -> Parser:
    """Flags of the demonstration."""
    parser = _parser("demo", "The whole product on this machine, with simulated GPUs and a simulated cluster.")
    parser.add_argument("--prometheus-port", type=int, default=9090)
    parser.add_argument("--alertmanager-port", type=int, default=9093)
    parser.add_argument("--node-port", type=int, default=9400, help="first of three ports")
    parser.add_argument("--watcher-port", type=int, default=9410)
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after so long (default: run until Ctrl-C)")
    return parser


PARSERS = {"node": node_parser, "cluster": cluster_parser, "demo": demo_parser}
