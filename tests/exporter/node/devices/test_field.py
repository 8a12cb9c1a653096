"""The table of fields: each row is sound, every spelling means one field, and NVIDIA's own files agree.

They are compared where a package of DCGM is installed, or `DCGM_SOURCE` names a copy of its source.
"""

import ast
import math
import os
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest

from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.device_source import Scope, WatchGroup
from exporter.node.devices.fields.field import NOT_READ, Field, MigValue, TableKind, fields, fields_by_name
from exporter.node.devices.fields.read_plan import GPU_INSTANCE_ONLY
from exporter.node.nvml.calls import gpm

TABLE = files("exporter.node.devices").joinpath("fields.csv").read_text(encoding="utf-8")
ROWS = [line for line in TABLE.splitlines() if not line.startswith("#")][1:]
EVERY = tuple(fields().values())
KINDS = {"INT64": "int", "TIMESTAMP": "int", "DOUBLE": "float", "STRING": "string", "BINARY": "binary"}
"""Our type by that of `dcgm_fields.h`."""
NO_FIELD = re.compile(r"UNKNOWN|_FIRST$|_LAST$|_(FIRST|LAST)_\w*FIELD_ID$|^DCGM_FI_MAX_|^DCGM_FI_INTERNAL_")
"""Constants among the fields that name no field, but the ends of a range of ids."""


def literals(union):
    """Return every text of a Literal, or of a union with Literals in it."""
    return {each for part in get_args(union) for each in (literals(part) if get_args(part) else {part})}


def test_every_id_and_every_name_is_there_once_and_ids_ascend():
    ids = [int(row.partition(",")[0]) for row in ROWS]
    assert ids == sorted(set(ids)) == list(fields())
    names = Counter(name for field in EVERY for name in field.names)
    assert [name for name, count in names.items() if count > 1] == []
    assert names.keys() == fields_by_name().keys()


def test_every_spelling_that_nvidias_go_and_python_bindings_know_is_there():
    assert len(fields()) >= 650
    assert len(fields_by_name()) >= 1050


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.partition(",")[0])
def test_a_row_is_sound(row):
    cells = row.split(",")
    assert len(cells) == 13, "a cell may have no comma"
    field = fields()[int(cells[0])]
    assert field.kind in literals(TableKind)
    assert field.scope in {*literals(Scope), *NOT_READ}
    assert field.mig in literals(MigValue)
    assert bool(field.mig) == (field.scope in ("gpu", "instance"))
    assert field.watch in get_args(WatchGroup)
    assert field.unit
    assert re.fullmatch(r"[34]\.\d(\.\d)?", field.since)
    assert re.fullmatch(r"([A-Z]|vGPU).*[^ .]\.", field.help)
    assert '"' not in row
    assert all(re.fullmatch(r"DCGM_FI_[A-Z0-9_]+|dcgm_[a-z0-9_]+", name) for name in field.names)
    assert field.names[0].startswith("DCGM_FI_")


def test_a_range_is_not_empty_and_only_numbers_have_one():
    for field in EVERY:
        if field.kind in ("string", "binary"):
            assert (field.low, field.high) == (None, None), field
        low, high = -math.inf if field.low is None else field.low, math.inf if field.high is None else field.high
        assert low < high, field


@pytest.mark.parametrize("file", ["default-counters.csv", "dcp-metrics-included.csv", "1.x-compatibility-metrics.csv"])
def test_every_name_of_the_shipped_files_is_known_also_in_comments(file):
    text = files("exporter.node.devices").joinpath("defaults", file).read_text(encoding="utf-8")
    names = {name.lower() for name in re.findall(r"^[#\s]*(DCGM_FI_\w+|dcgm_\w+)\s*,", text, re.MULTILINE)}
    assert len(names) >= 20
    assert names <= {name.lower() for name in fields_by_name()}


RENAMED = {
    51: "DEV_BRAND DEV_GPU_BRAND",
    56: "DEV_OEM_INFOROM_VER DEV_INFOROM_OEM_VERSION",
    65: "DEV_COMPUTE_MODE DEV_GPU_COMPUTE_MODE",
    74: "DEV_CC_MODE",
    80: "DEV_ECC_INFOROM_VER DEV_INFOROM_ECC_VERSION",
    81: "DEV_POWER_INFOROM_VER DEV_INFOROM_POWER_VERSION",
    82: "DEV_INFOROM_IMAGE_VER DEV_INFOROM_IMAGE_VERSION",
    112: "DEV_CLOCK_THROTTLE_REASONS DEV_CLOCKS_EVENT_REASONS",
    153: "DEV_GPU_TEMP_LIMIT DEV_GPU_TEMP_TLIMIT DEV_GPU_TEMP_MARGIN_CELSIUS",
    161: "DEV_POWER_MGMT_LIMIT_MIN DEV_BOARD_POWER_LIMIT_MIN_WATTS",
    162: "DEV_POWER_MGMT_LIMIT_MAX DEV_BOARD_POWER_LIMIT_MAX_WATTS",
    406: "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L12 DEV_NVLINK_CRC_FLIT_ERROR_L12_TOTAL",
    451: "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6 DEV_NVLINK_CRC_FLIT_ERROR_L6_TOTAL",
    458: "DEV_NVLINK_CRC_DATA_ERROR_COUNT_L7 DEV_NVLINK_CRC_DATA_ERROR_L7_TOTAL",
    487: "DEV_NVLINK_REPLAY_ERROR_COUNT_L15 DEV_NVLINK_REPLAY_ERROR_L15_TOTAL",
    493: "DEV_NVLINK_RECOVERY_ERROR_COUNT_L17 DEV_NVLINK_RECOVERY_ERROR_L17_TOTAL",
    878: "DEV_NVSWITCH_LINK_DEVICE_UUID DEV_NVSWITCH_DEVICE_UUID DEV_NVSWITCH_UUID",
    1100: "DEV_CPU_UTIL_TOTAL DEV_CPU_UTIL_RATIO",
    1421: "DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_COUNT_NS",
}


@pytest.mark.parametrize("number", RENAMED)
def test_a_renamed_field_is_the_same_under_each_of_its_names(number):
    names = [f"DCGM_FI_{name}" for name in RENAMED[number].split()]
    assert [fields_by_name()[name].id for name in names] == [number] * len(names)
    counters = parse("\n".join(f"{name}, label, x" for name in names), "f")
    assert counters.problems == ()
    assert {row.field.id for row in counters.rows} == {number}


def test_a_field_in_a_base_unit_is_not_the_older_one():
    assert fields_by_name()["DCGM_FI_DEV_SM_CLOCK_HERTZ"].id == 1603
    assert fields_by_name()["DCGM_FI_DEV_SM_CLOCK"].id == 100


def test_what_code_says_about_fields_of_mig_devices_is_what_the_table_says():
    assert {field.id for field in EVERY if field.mig == "gpu_instance"} == GPU_INSTANCE_ONLY
    not_measured = {field.id for field in EVERY if field.mig == "none" and field.watch == "basic"}
    assert not_measured == set(field_ids.UTILIZATION)
    assert {field.id for field in EVERY if field.scope == "system" and field.is_read} >= field_ids.SYSTEM


SHORTER = {"GPU_COUNT": "DEV_COUNT", "XID": "DEV_XID_ERRORS", "GPU_RECOVERY_ACTION": "DEV_GET_GPU_RECOVERY_ACTION"}
"""Constants with another name than their field."""


def test_every_constant_is_the_id_of_the_field_of_that_name():
    constants = {name: value for name, value in vars(field_ids).items() if name.isupper() and isinstance(value, int)}
    assert len(constants) >= 120
    for name, value in constants.items():
        spellings = (f"DCGM_FI_{prefix}{SHORTER.get(name, name)}" for prefix in ("", "DEV_", "PROF_"))
        assert value in [fields_by_name()[each].id for each in spellings if each in fields_by_name()], name


def test_constants_of_several_fields_are_the_ids_of_the_fields_of_those_names():
    by_name = {f"DCGM_FI_DEV_ECC_{name}": field for name, field in field_ids.ECC_COUNTS.items()}
    for kind, each_link in field_ids.NVLINK_ERROR_COUNTS.items():
        by_name |= {f"DCGM_FI_DEV_NVLINK_{kind}_ERROR_COUNT_L{link}": field for link, field in enumerate(each_link)}
    assert len(by_name) == 20 + 4 * 18
    assert by_name == {name: fields_by_name()[name].id for name in by_name}


NO_IDS = {0, 1, 2, 8, 12, 15, 16, 18, 20, 100, 255, 1000, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF}
"""Numbers of conversions, shifts, masks, decoders, links and blank values."""


@pytest.mark.parametrize("module", ["calls/calls", "calls/field_values", "native/values", "calls/gpm"])
def test_the_tables_of_nvml_have_names_and_no_numbers(module):
    text = files("exporter.node.nvml").joinpath(f"{module}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    numbers = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is int}
    assert numbers <= NO_IDS


def test_every_gpm_metric_that_is_mapped_can_be_asked_for_by_a_counters_file():
    assert len(gpm.FIELDS) >= 70
    assert fields().keys() >= gpm.FIELDS
    text = "\n".join(f"{fields()[number].names[0]}, gauge, x" for number in sorted(gpm.FIELDS))
    counters = parse(text, "gpm.csv")
    assert (counters.problems, counters.unread) == ((), ())
    assert {field.id for field in counters.fields} == gpm.FIELDS
    assert {field.watch for field in counters.fields} == {"profiling"}


def test_a_field_object_is_made_once():
    field = fields_by_name()["DCGM_FI_DEV_GPU_TEMP"]
    assert isinstance(field, Field)
    assert field is fields()[150] is fields_by_name()["dcgm_gpu_temp"]


def official(*places: str) -> str:
    """Return the text of the first of these files of DCGM that is there; skips the test where none is."""
    source = os.environ.get("DCGM_SOURCE", "")
    for place in places:
        path = Path(source, place) if not place.startswith("/") else Path(place)
        if path.is_file() and (source or place.startswith("/")):
            return path.read_text(encoding="utf-8")
    pytest.skip("no package of DCGM is installed, and DCGM_SOURCE does not name its source")


def test_ids_and_names_are_those_of_dcgms_header():
    text = official("dcgmlib/dcgm_fields.h", "/usr/include/dcgm_fields.h", "/usr/local/include/dcgm_fields.h")
    defined = dict(re.findall(r"^#define\s+(DCGM_FI_\w+)\s+(\w+)", text, re.MULTILINE))
    check({name: defined.get(value, value) for name, value in defined.items()})


def test_ids_and_names_are_those_of_the_official_python_bindings():
    folder = "/usr/share/datacenter-gpu-manager-4/bindings/python3"
    text = official("testing/python3/dcgm_fields.py", f"{folder}/dcgm_fields.py")
    defined = dict(re.findall(r"^(DCGM_FI_\w+)\s*=\s*(\d+)", text, re.MULTILINE))
    aliases = re.findall(r'"(DCGM_FI_\w+)"\s*:\s*"(\w+)"', text)
    check(defined | {old: defined[new] for old, new in aliases})


def check(defined: dict[str, str]) -> None:
    """Assert that the table has each of these names under this id."""
    official_ids = {name: int(number) for name, number in defined.items() if not NO_FIELD.search(name)}
    assert len(official_ids) > 500
    ours = {name: field.id for name, field in fields_by_name().items()}
    assert official_ids.items() - ours.items() == set()


def test_types_are_those_of_dcgms_source():
    text = official("dcgmlib/src/dcgm_fields.cpp")
    rows = re.findall(r"\(\s*(DCGM_FI_\w+),\s*DCGM_FT_(\w+),", text)
    ours = {name: fields_by_name()[name].kind for name, _ in rows if name in fields_by_name()}
    assert ours == {name: KINDS[type_] for name, type_ in rows if name in ours}
    assert len(ours) > 500
