"""What people reported who put another exporter in the place of dcgm-exporter. A test is named after its report.

These are about what is given to the exporter: flags, variables, manifests and counters files.
"""

import os

import pytest

from exporter.cli import parse
from exporter.flags.table import COMMANDS
from exporter.node.config import node_config
from exporter.node.devices.counters.counters_file import decode
from exporter.node.devices.counters.counters_file import parse as parse_counters
from exporter.web.config_file import load
from exporter.web.negotiation import wants_openmetrics
from tests.deploy.image import last_stage
from tests.exporter.node.scenario_flow import SimulatedFlow


def config(*argv, **environment):
    return node_config(parse(argv, environment), environment)


@pytest.mark.parametrize("milliseconds", ["33", "3"])
def test_report_61_an_interval_below_ours_starts_with_one_warning(milliseconds):
    found = config(DCGM_EXPORTER_INTERVAL=milliseconds)
    assert (found.interval, len(found.warnings)) == (0.1, 1)


def test_report_62_the_name_of_dcgm_exporter_starts_the_exporter_as_a_command_and_as_an_argument():
    script = "dcgm-exporter --remote-hostengine-info 10.0.0.9 --collectors F"
    found = config(*script.split(), DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE="device-name")
    assert (found.remote, str(found.counters_file)) == ("10.0.0.9", "F")
    assert config("dcgm-exporter", "-c", "1000").interval == 1.0
    links = " ".join(text for name, text in last_stage() if name == "RUN")
    assert "/usr/bin/dcgm-exporter" in links


@pytest.mark.parametrize("given", [("-m", "gpu:counters"), ("--configmap-data=gpu:counters",), ()], ids=str)
def test_report_63_counters_of_a_config_map_are_asked_for_by_flag_and_by_variable(given):
    environment = {} if given else {"DCGM_EXPORTER_CONFIGMAP_DATA": "gpu:counters"}
    found = config(*given, **environment)
    assert (str(found.config_map), found.warnings) == ("ConfigMap gpu/counters", ())


@pytest.mark.parametrize("flag", COMMANDS["node"].ignored, ids=lambda flag: flag.variable)
def test_report_64_what_is_asked_for_by_a_variable_and_not_there_is_named_once(flag):
    (warning,) = config(**{flag.variable: "1"}).warnings
    assert flag.variable in warning


NEWEST = [
    "--web-read-timeout=10s",
    "--web-write-timeout=30s",
    "--max-concurrent-scrapes=2",
    "--enable-exporter-metrics",
    "--watch-max-keep-age=600s",
    "--watch-max-keep-samples=100",
    "--health-require-gpus",
    "--container-labels",
    "--container-runtime-socket=/run/containerd/containerd.sock",
]


@pytest.mark.parametrize("flag", [*NEWEST, "-r=vsock://3:5555", "-d=g:0+i:0-3"])
def test_report_65_flags_of_the_newest_dcgm_exporter_are_accepted_and_at_most_ignored_with_a_warning(flag):
    assert len(config(flag).warnings) <= 1


GO_SPELLINGS = {
    ("-kubernetes",): ("kubernetes", True),
    ("-collectors", "F"): ("counters_file", "F"),
    ("--f", "F"): ("counters_file", "F"),
    ("--k",): ("kubernetes", True),
}


@pytest.mark.parametrize("words", GO_SPELLINGS, ids=" ".join)
def test_report_66_flags_may_have_one_dash_or_two_whatever_their_length(words):
    name, expected = GO_SPELLINGS[words]
    found = getattr(config(*words, NODE_NAME="n"), name)
    assert (found if expected is True else str(found)) == expected


def test_report_66_a_word_with_one_dash_is_not_read_as_single_letters():
    found = config("-rbmn")
    assert (found.remote, found.style.replace_blanks_in_model) == (None, True)


def test_report_67_a_list_flag_that_is_given_twice_has_both_values():
    names = ("--nvidia-resource-names", "nvidia.com/a100", "--nvidia-resource-names", "nvidia.com/h100")
    assert config(*names).resource_names == ("nvidia.com/a100", "nvidia.com/h100")


HARDENED = """\
tls_server_config:
  cert_file: a.crt
  key_file: a.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  min_version: TLS12
  max_version: TLS13
  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
  prefer_server_cipher_suites: true
  curve_preferences: [X25519]
http_server_config:
  http2: true
  headers:
    Strict-Transport-Security: max-age=31536000
rate_limit:
  interval: 1s
  burst: 20
"""


def test_report_68_a_hardened_web_configuration_file_is_read(tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(HARDENED)
    found = load(file)
    assert found.tls.ciphers == "ECDHE-RSA-AES128-GCM-SHA256"
    assert found.tls.client_ca == tmp_path / "ca.crt"


OF_PUBLIC_FILES = {
    "hardware-observer": """
        DCGM_FI_DEV_BRAND, label, x
        DCGM_FI_DEV_COMPUTE_MODE, gauge, x
        DCGM_FI_DEV_CC_MODE, gauge, x
        DCGM_FI_DEV_PERSISTENCE_MODE, gauge, x
        DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN, gauge, x
        DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX, gauge, x
        DCGM_FI_DEV_INFOROM_IMAGE_VER, label, x
        DCGM_FI_DEV_OEM_INFOROM_VER, label, x
        DCGM_FI_DEV_ECC_INFOROM_VER, label, x
        DCGM_FI_DEV_POWER_INFOROM_VER, label, x
    """,
    "GB200": """
        DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS, counter, x
        DCGM_FI_DEV_NVLINK_COUNT_TX_DISCARDS, counter, x
        DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT, gauge, x
        DCGM_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS, counter, x
        DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, counter, x
    """,
}


@pytest.mark.parametrize("file", OF_PUBLIC_FILES)
def test_report_69_the_names_of_public_counters_files_are_known(file):
    found = parse_counters(OF_PUBLIC_FILES[file], file)
    assert (found.problems, found.unread) == ((), ())
    assert len(found.rows) == OF_PUBLIC_FILES[file].count(", x")


ROW = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature."
OTHER = "DCGM_FI_DEV_POWER_USAGE, gauge, Power."
OF_EDITORS = {
    "mark and CRLF": (f"\ufeff# Format,,\r\n{ROW}\r\n{OTHER}\r\n".encode(), 2, 0),
    "mark before a row": (f"\ufeff{ROW}\n{OTHER}\n".encode(), 2, 0),
    "Latin-1": (f"DCGM_FI_DEV_MEMORY_TEMP, gauge, in °C\n{ROW}\n".encode("latin-1"), 1, 1),
    "help on two lines": (f'DCGM_FI_DEV_GPU_TEMP, gauge, "of the\nGPU"\n{OTHER}\n'.encode(), 2, 0),
    "comments only": (b"# nothing\n# is asked for\n", 0, 0),
}


@pytest.mark.parametrize("editor", OF_EDITORS)
def test_report_70_a_file_of_any_editor_costs_at_most_the_rows_that_cannot_be_read(editor):
    content, rows, problems = OF_EDITORS[editor]
    found = parse_counters(decode(content), "counters.csv")
    assert (len(found.rows), len(found.problems)) == (rows, problems)


def test_report_72_the_engine_of_another_machine_names_the_host_and_its_gpus_are_not_expected_here():
    found = config("-r", "gpu-node-7:5555", NODE_NAME="here")
    assert (found.style.hostname, found.reads_this_machine) == ("gpu-node-7", False)
    assert config("-r", "localhost:5555", NODE_NAME="here").style.hostname == "here"
    assert config("-r", "gpu-node-7:5555", "-k", NODE_NAME="here").style.hostname == "here"


PREFERS_OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def test_report_73_a_scraper_that_prefers_openmetrics_gets_counters_as_counters():
    assert not wants_openmetrics(PREFERS_OPENMETRICS)
    text = SimulatedFlow("whole", t=5.0).exposition().text.decode()
    for name in ("TOTAL_ENERGY_CONSUMPTION", "PCIE_REPLAY_COUNTER", "UNCORRECTABLE_REMAPPED_ROWS"):
        assert f"# TYPE DCGM_FI_DEV_{name} counter\n" in text


GPU_OPERATOR = {
    "DCGM_EXPORTER_LISTEN": ":9400",
    "DCGM_EXPORTER_KUBERNETES": "true",
    "DCGM_EXPORTER_COLLECTORS": "/etc/dcgm-exporter/dcp-metrics-included.csv",
    "DCGM_REMOTE_HOSTENGINE_INFO": "nvidia-dcgm:5555",
    "NODE_NAME": "gpu-7",
    "NVIDIA_DISABLE_REQUIRE": "true",
    "NVIDIA_VISIBLE_DEVICES": "all",
}
CLOUD_WATCH = {"DCGM_EXPORTER_INTERVAL": "15000", "DCGM_EXPORTER_LISTEN": ":9400", "DCGM_EXPORTER_KUBERNETES": "true"}


def test_report_85_the_variables_of_the_gpu_operator_and_of_the_cloudwatch_chart_are_understood():
    found = config(**GPU_OPERATOR)
    assert (found.kubernetes, found.remote, found.style.hostname) == (True, "nvidia-dcgm:5555", "gpu-7")
    assert os.fspath(found.counters_file) == GPU_OPERATOR["DCGM_EXPORTER_COLLECTORS"]
    assert found.warnings == ()
    assert config(**CLOUD_WATCH, NODE_NAME="gpu-7").interval == 15.0
