"""The flags of each command: names, variables, defaults and meanings, one row each.

The parser, the environment, `--help` and docs/flags.md are made from these rows.
"""

from exporter.config import DEFAULT_INTERVAL_SECONDS
from exporter.flags.attribution import ATTRIBUTION
from exporter.flags.audit import AUDIT_LOG, CSV, PERIOD, VERIFY
from exporter.flags.bundle import BUNDLE
from exporter.flags.cluster import API_SERVER, INTERVAL, LEASE, METADATA_LABELS, PRICES
from exporter.flags.compare import COMPARE
from exporter.flags.flag import Command, Flag
from exporter.flags.ignored import IGNORED
from exporter.flags.labels import LABELS
from exporter.flags.mig import MIG
from exporter.flags.pods import POD_METADATA
from exporter.flags.processes import PROCESSES
from exporter.flags.prometheus import PROMETHEUS
from exporter.flags.report import REPORT, REPORT_FORMS
from exporter.flags.series import SERIES
from exporter.flags.serving import GENERAL, LOG, serving
from exporter.flags.values import (
    BOOLEAN,
    CONFIG_MAP,
    COUNT,
    FILE,
    FILES,
    HOST_ENGINE,
    MILLISECONDS,
    SELECTION,
    WINDOW,
    choice,
    text_value,
)

STATE_FILE = Flag(
    "state-file",
    FILE,
    "file in which the exporter remembers the GPUs of the node, and how long each device was in which state, while it "
    "is restarted; its folder must exist",
    variable="GPUGAUGE_STATE_FILE",
)
READING = (
    Flag(
        "source",
        choice("auto", "dcgm", "nvml", "simulated", optional=True),
        "auto: a reachable host engine, else an embedded one, else NVML; never simulated. "
        "Where it is not given: dcgm with -r, else auto",
        variable="GPUGAUGE_SOURCE",
    ),
    Flag(
        "remote-hostengine-info",
        HOST_ENGINE,
        "host engine as host:port, tcp://host:port, [IPv6]:port, unix:///path or vsock://cid:port; "
        "the only source, unless --source is given too",
        "r",
        "DCGM_REMOTE_HOSTENGINE_INFO",
    ),
    Flag(
        "collect-interval",
        MILLISECONDS,
        "milliseconds between collections, from 100 to 3600000; less is raised to 100",
        "c",
        "DCGM_EXPORTER_INTERVAL",
        f"{DEFAULT_INTERVAL_SECONDS * 1000:.0f}",
    ),
    Flag("collectors", FILE, "counters file, CSV (name, type, help) or YAML", "f", "DCGM_EXPORTER_COLLECTORS"),
    Flag(
        "configmap-data",
        CONFIG_MAP,
        "ConfigMap whose key `metrics` has the counters; the counters file that is named beside it stands in until it "
        "can be used",
        "m",
        "DCGM_EXPORTER_CONFIGMAP_DATA",
        "none",
    ),
    Flag(
        "config-file",
        FILE,
        "configuration file of dcgm-exporter: fields, intervals and watch groups; flags and variables come first",
        variable="DCGM_EXPORTER_CONFIG_FILE",
    ),
    Flag(
        "xid-count-window-size",
        WINDOW,
        "milliseconds that DCGM_EXP_XID_ERRORS_COUNT looks back, from 1 to 3600000",
        "x",
        "DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE",
        "300000",
    ),
    Flag(
        "clock-events-count-window-size",
        WINDOW,
        "milliseconds that DCGM_EXP_CLOCK_EVENTS_COUNT looks back, from 1 to 3600000",
        variable="DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE",
        default="300000",
    ),
    Flag(
        "devices",
        SELECTION,
        "of which devices DCGM-named series are exposed: f is all, g the GPUs, i the GPU instances, each with numbers "
        "such as g:0,2-3; g:0+i:9 is GPU 0 and GPU instance 9",
        "d",
        "DCGM_EXPORTER_DEVICES_STR",
        "f",
    ),
    Flag(
        "health-require-gpus",
        BOOLEAN,
        "answer 503 on /health until a GPU was read",
        variable="DCGM_EXPORTER_HEALTH_REQUIRE_GPUS",
    ),
    Flag(
        "switch-devices",
        SELECTION,
        "which NVSwitches and NVLinks of them are read: f is all, g the NVSwitches, i the links, each with ids such as "
        "g:0,2-3; g:0+i:0-17 is NVSwitch 0 and these of its links",
        "s",
        "DCGM_EXPORTER_OTHER_DEVICES_STR",
        "f",
    ),
    Flag(
        "cpu-devices",
        SELECTION,
        "which Grace CPUs and cores are read, in the same way: g are the CPUs, i the cores",
        "p",
        "DCGM_EXPORTER_CPU_DEVICES_STR",
        "f",
    ),
    Flag(
        "profiling-pause-file",
        FILE,
        "while there is a file of this name, profiling fields are not read, so that a profiler can have the hardware "
        "counters",
        variable="GPUGAUGE_PROFILING_PAUSE_FILE",
    ),
    Flag("expected-gpus", COUNT, "how many GPUs the node should have", default="0"),
    STATE_FILE,
    Flag("libdcgm", FILE, "libdcgm.so.4 or .so.3 where the loader does not find it", variable="GPUGAUGE_LIBDCGM"),
    Flag(
        "dcgm-bindings",
        text_value("FOLDER"),
        "folder of NVIDIA's Python bindings of DCGM, which DCGM_EXP_GPU_HEALTH_STATUS needs, where a DCGM package did "
        "not install them",
        variable="GPUGAUGE_DCGM_BINDINGS",
    ),
    Flag(
        "scenario",
        FILE,
        "scenario of --source simulated: a built-in name or a file",
        variable="GPUGAUGE_SCENARIO",
    ),
)
JSON = Flag("json", BOOLEAN, "write JSON")
OBJECTS = Flag("objects", FILES, "read files of `kubectl get pods,nodes -A -o json` instead of a cluster")

_COMMANDS = (
    Command(
        "node",
        "Serve GPU metrics of this node, attributed to the pods that its GPUs are allocated to.",
        {
            "general": GENERAL,
            "serving": serving(":9400"),
            "log": LOG,
            "reading devices": READING,
            "attribution": ATTRIBUTION,
            "pod metadata": POD_METADATA,
            "processes of pods": PROCESSES,
            "audit log": AUDIT_LOG,
            "labels of DCGM-named series": LABELS,
            "series beside the DCGM-named ones": SERIES,
        },
        ignored=IGNORED,
    ),
    Command(
        "cluster",
        "Serve metrics of the cluster: pending GPU pods and their reasons, free capacity.",
        {
            "general": GENERAL,
            "serving": serving(":9410"),
            "log": LOG,
            "API server": API_SERVER,
            "replicas": (LEASE,),
            "collections": (INTERVAL,),
            "labels of info series": METADATA_LABELS,
            "prices": (PRICES,),
        },
    ),
    Command(
        "explain",
        "Explain why a GPU pod is pending or hardly uses its GPUs, or a node offers none.",
        {
            "general": GENERAL,
            "output": (JSON,),
            "objects": (
                OBJECTS,
                Flag("watcher", text_value("URL"), "address of a watcher, asked for what the credentials do not show"),
            ),
            "API server": API_SERVER,
            "Prometheus": PROMETHEUS,
        },
        operands="[NAMESPACE/POD | node/NAME]",
    ),
    Command(
        "forget",
        "Take a GPU that will not come back out of the state file; a running exporter takes that up.",
        {"general": GENERAL, "state": (STATE_FILE,)},
        operands="UUID",
    ),
    Command(
        "check-config",
        "Check a counters file, a configuration file or a web configuration file, row by row.",
        {"general": GENERAL, "output": (JSON,)},
        operands="FILE",
    ),
    Command(
        "audit",
        "Read audit logs: GPU-hours, who had which GPU when, gaps, and whether the lines are all there.",
        {"general": GENERAL, "output": (JSON, CSV), "what is shown": PERIOD, "instead of a table": (VERIFY,)},
        operands="FILE...",
    ),
    Command(
        "mig",
        "Check whether MIG geometries fit a GPU: those of the MIG manager's configuration, or of a node.",
        {
            "general": GENERAL,
            "output": (JSON,),
            "what is checked": MIG,
            "objects": (OBJECTS,),
            "API server": API_SERVER,
        },
        operands="check [FILE]",
    ),
    Command(
        "report",
        "Report GPU-hours allocated, used and wasted, with costs; or the receipt of one workload.",
        {
            "general": GENERAL,
            "output": (JSON, CSV, *REPORT_FORMS),
            "what is shown": REPORT,
            "Prometheus": PROMETHEUS,
        },
        operands="[NAMESPACE/WORKLOAD]",
    ),
    Command(
        "compare",
        "Compare two responses of /metrics: what is the same, renamed, missing, new, different.",
        {"general": GENERAL, "output": (JSON,), "what is compared": COMPARE},
        operands="OLD NEW | FILES... NEW",
    ),
    Command(
        "bundle",
        "Write rules, dashboards, manifests, the chart and routes for Alertmanager to a folder.",
        {"general": GENERAL, "what is written": BUNDLE},
        operands="DIR",
    ),
    Command("metrics", "Print every metric that the programs can expose, as Markdown.", {"general": GENERAL}),
)


def _doctor(node: Command) -> Command:
    """The command that examines what `node` would need, with the same flags and variables."""
    groups = {group: flags for group, flags in node.groups.items() if group != "general"}
    return Command(
        "doctor",
        "Examine what the node exporter needs on this node, with the flags of node; change nothing.",
        {"general": GENERAL, "output": (JSON,), **groups},
        ignored=node.ignored,
    )


COMMANDS = {command.name: command for command in (*_COMMANDS, _doctor(_COMMANDS[0]))}
