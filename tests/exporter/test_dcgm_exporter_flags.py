"""Every flag of dcgm-exporter up to 4.8.4 is taken, under each of its names and by its variable."""

import socket

import pytest

from exporter import cli
from exporter.config import DEFAULT_READ_SECONDS, DEFAULT_WRITE_SECONDS
from exporter.flags.table import COMMANDS
from exporter.flags.values import BOOLEAN
from exporter.node.config import node_config
from exporter.program import serve
from tests.fakes.endpoints import FixedEndpoints

ROWS = """\
collectors f DCGM_EXPORTER_COLLECTORS /a.csv
address a DCGM_EXPORTER_LISTEN [::1]:9400
collect-interval c DCGM_EXPORTER_INTERVAL 30000
kubernetes k DCGM_EXPORTER_KUBERNETES -
use-old-namespace o DCGM_EXPORTER_USE_OLD_NAMESPACE -
devices d DCGM_EXPORTER_DEVICES_STR f
switch-devices s DCGM_EXPORTER_OTHER_DEVICES_STR f
cpu-devices p DCGM_EXPORTER_CPU_DEVICES_STR f
configmap-data m DCGM_EXPORTER_CONFIGMAP_DATA none
remote-hostengine-info r DCGM_REMOTE_HOSTENGINE_INFO localhost:5555
kubernetes-enable-pod-labels - DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS -
kubernetes-enable-pod-uid - DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID -
kubernetes-gpu-id-type - DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE device-name
kubernetes-pod-label-allowlist-regex - DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX ^app$
no-hostname n DCGM_EXPORTER_NO_HOSTNAME -
fake-gpus - DCGM_EXPORTER_USE_FAKE_GPUS -
web-config-file - DCGM_EXPORTER_WEB_CONFIG_FILE /web.yml
web-systemd-socket - DCGM_EXPORTER_SYSTEMD_SOCKET -
xid-count-window-size x DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE 300000
clock-events-count-window-size - DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE 300000
replace-blanks-in-model-name rbmn DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME -
debug - DCGM_EXPORTER_DEBUG -
log-format - DCGM_EXPORTER_LOG_FORMAT json
enable-dcgm-log - DCGM_EXPORTER_ENABLE_DCGM_LOG -
dcgm-log-level - DCGM_EXPORTER_DCGM_LOG_LEVEL NONE
pod-resources-kubelet-socket - DCGM_POD_RESOURCES_KUBELET_SOCKET /k.sock
hpc-job-mapping-dir - DCGM_HPC_JOB_MAPPING_DIR /jobs
nvidia-resource-names - NVIDIA_RESOURCE_NAMES nvidia.com/a100,nvidia.com/h100
kubernetes-virtual-gpus - KUBERNETES_VIRTUAL_GPUS -
kubernetes-enable-dra - KUBERNETES_ENABLE_DRA -
disable-startup-validate - DISABLE_STARTUP_VALIDATE -
enable-gpu-bind-unbind-watch - DCGM_EXPORTER_ENABLE_GPU_BIND_UNBIND_WATCH -
gpu-bind-unbind-poll-interval - DCGM_EXPORTER_GPU_BIND_UNBIND_POLL_INTERVAL 1s
dump-enabled - DCGM_EXPORTER_DUMP_ENABLED -
dump-directory - DCGM_EXPORTER_DUMP_DIRECTORY /dumps
dump-retention - DCGM_EXPORTER_DUMP_RETENTION 24
dump-compression - DCGM_EXPORTER_DUMP_COMPRESSION -
enable-pprof - DCGM_EXPORTER_ENABLE_PPROF -
config-file - DCGM_EXPORTER_CONFIG_FILE /config.yaml
web-read-timeout - DCGM_EXPORTER_WEB_READ_TIMEOUT 3s
web-write-timeout - DCGM_EXPORTER_WEB_WRITE_TIMEOUT 45s
health-require-gpus - DCGM_EXPORTER_HEALTH_REQUIRE_GPUS -
watch-max-keep-age - DCGM_EXPORTER_WATCH_MAX_KEEP_AGE 600s
watch-max-keep-samples - DCGM_EXPORTER_WATCH_MAX_KEEP_SAMPLES 0
max-concurrent-scrapes - DCGM_EXPORTER_MAX_CONCURRENT_SCRAPES 16
enable-exporter-metrics - DCGM_EXPORTER_ENABLE_EXPORTER_METRICS -
container-labels - DCGM_EXPORTER_CONTAINER_LABELS -
container-runtime-socket - DCGM_CONTAINER_RUNTIME_SOCKET /run/docker.sock
"""
"""Name, second name, variable and an accepted value; `-` for none, which in the last column means a Boolean.

From dcgm-exporter's command line of May 2026 (38 flags), then those of 4.8.3, 4.8.4 and its main branch of September
2026.
"""
FLAGS = [tuple("" if word == "-" else word for word in row.split()) for row in ROWS.splitlines()]
NODE = COMMANDS["node"]
IGNORED = {flag.name for flag in NODE.ignored}


def seen(argv, environment):
    """What the command line and the environment lead to: values, and what the log says."""
    arguments = cli.parse(argv, environment)
    return {name: value for name, value in vars(arguments).items() if name not in ("warnings", "given")}, arguments


@pytest.mark.parametrize(("name", "short", "variable", "value"), FLAGS, ids=[flag[0] for flag in FLAGS])
def test_it_is_taken_under_each_name_and_by_its_variable(name, short, variable, value):
    spellings = [f"-{name}", f"--{name}"] + ([f"-{short}", f"--{short}"] if short else [])
    by_variable, from_variable = seen([], {variable: value or "true"})
    for spelling in spellings:
        by_flag, from_flag = seen([f"{spelling}={value}"] if value else [spelling], {})
        assert by_flag == by_variable
        assert from_flag.warnings == ((f"ignored for compatibility: {spelling}",) if name in IGNORED else ())
        assert seen([spelling, value] if value else [f"{spelling}=true"], {})[0] == by_flag
    assert from_variable.warnings == ((f"ignored for compatibility: {variable}",) if name in IGNORED else ())


@pytest.mark.parametrize(("name", "short", "variable", "value"), FLAGS, ids=[flag[0] for flag in FLAGS])
def test_it_is_a_boolean_where_it_is_one_there(name, short, variable, value):
    (flag,) = [flag for flag in (*NODE.flags(), *NODE.ignored) if flag.name == name]
    assert (flag.value is BOOLEAN) == (not value)
    assert (flag.short, flag.variable) == (short, variable)


def config(*argv, **environment):
    return node_config(cli.parse(argv, environment), {"NODE_NAME": "n"})


def test_timeouts_are_durations_of_go():
    found = config("--web-read-timeout", "1m30s", DCGM_EXPORTER_WEB_WRITE_TIMEOUT="500ms")
    assert (found.web.read_seconds, found.web.write_seconds) == (90.0, 0.5)
    assert found.warnings == ()
    assert (config().web.read_seconds, config().web.write_seconds) == (10.0, 30.0)


@pytest.mark.parametrize("text", ["10", "soon", "0s", "-1s"])
def test_a_timeout_that_is_none_is_named_and_the_default_is_used(text):
    found = config("--web-read-timeout", text, "--web-write-timeout", text)
    assert (found.web.read_seconds, found.web.write_seconds) == (DEFAULT_READ_SECONDS, DEFAULT_WRITE_SECONDS)
    assert found.warnings == tuple(
        f"--web-{which}-timeout: {text!r} is not a duration such as 30s; the default is used"
        for which in ("read", "write")
    )


def test_a_client_that_sends_nothing_is_dropped_after_the_read_timeout():
    web = config("-a", "127.0.0.1:0", "--web-read-timeout", "300ms", "--status-page", "off").web
    servers = serve("test", web, FixedEndpoints(), {}, lambda _: ())
    try:
        port = int(servers.ports().removeprefix("port "))
        with socket.create_connection(("127.0.0.1", port), timeout=8.0) as client:  # the default is 10 s
            assert client.recv(1) == b""
    finally:
        servers.stop()
