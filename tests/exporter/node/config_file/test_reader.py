"""The configuration file of dcgm-exporter is read in both of its versions, and a mistake in it is one message."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.config import ConfigError, ConfigFileError
from exporter.node.config_file.content import NodeConfigFile
from exporter.node.config_file.reader import load
from exporter.node.devices.counters.raw_row import RawRow

V1 = """\
version: 1
metrics:
  file: /etc/dcgm-exporter/default-counters.csv
collection:
  interval: 45s
  watchGroups:
    - name: slow
      interval: 10m
      fields: [DCGM_FI_DEV_NVLINK_PPCNT_*, " DCGM_FI_DEV_ECC_* "]
    - name: fast
      interval: 500ms
      fields:
        - DCGM_FI_DEV_GPU_TEMP
"""
V2 = """\
version: 2
metrics:
  file: /etc/dcgm-exporter/default-counters.csv
collections:
  - name: fast
    every: 500ms
    metrics: {include: [DCGM_FI_DEV_GPU_TEMP]}
  - name: scrape
    every: 45s
    metrics: {include: ["*"]}
"""
INLINE = """\
version: 1
metrics:
  fields:
    - name: DCGM_FI_DEV_GPU_TEMP
      prometheusType: gauge
      help: T
    - name: a
      kind: b
"""
EVERY = "{name: %s, every: 1s, metrics: {include: ['*']}}"
GROUP = "version: 1\ncollection:\n  watchGroups:\n"


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "config.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def groups(config):
    return [(group.name, group.seconds, group.patterns) for group in config.groups]


def test_version_1_has_one_interval_and_watch_groups(file):
    config = load(file(V1))
    assert (config.counters_file, config.fields) == (Path("/etc/dcgm-exporter/default-counters.csv"), None)
    assert config.interval == 45.0
    assert groups(config) == [
        ("slow", 600.0, ("DCGM_FI_DEV_NVLINK_PPCNT_*", "DCGM_FI_DEV_ECC_*")),
        ("fast", 0.5, ("DCGM_FI_DEV_GPU_TEMP",)),
    ]
    assert config.warnings == ()


def test_the_collection_of_version_2_that_includes_every_field_has_the_interval_of_the_others(file):
    config = load(file(V2))
    assert config.interval == 45.0
    assert groups(config) == [("fast", 0.5, ("DCGM_FI_DEV_GPU_TEMP",))]


def test_the_fields_in_the_file_are_rows_with_their_lines(file):
    path = file(INLINE)
    config = load(path)
    assert config.fields.rows == (
        RawRow(4, "DCGM_FI_DEV_GPU_TEMP", "gauge", "T"),
        RawRow(8, problem="kind: unknown key; known: name, prometheusType, help"),
    )
    assert (config.fields.file, config.counters_file) == (str(path), None)
    assert config.fields.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("text", ["version: 1\n", "version: 2\nmetrics:\ncollections:\n", "\ufeffversion: 1\n"])
def test_a_file_may_say_nothing_but_its_version(file, text):
    assert load(file(text)) == NodeConfigFile()


def test_keys_for_what_is_not_here_are_accepted_and_named(file, tmp_path):
    text = """\
version: 2
metrics: {enableExporterMetrics: true}
sources: {dcgm: {watch: {maxKeepAge: 10m}}}
server: {maxConcurrentScrapes: 16}
collections:
  - name: a
    every: 5s
    sources: {dcgm: {watch: {maxKeepSamples: 2}}}
    metrics: {include: [b]}
"""
    assert load(file(text)).warnings == tuple(
        f"{tmp_path}/config.yaml:{line}: {key}: ignored for compatibility"
        for line, key in ((2, "enableExporterMetrics"), (8, "sources"), (3, "sources"), (4, "server"))
    )
    assert len(load(file("version: 1\ncollection: {retention: {maxAge: 1m}}\n")).warnings) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: file: the key version is missing"),
        ("metrics:\n", "1: file: the key version is missing"),
        ("version: 3\n", "1: version: must be 1 or 2, not '3'"),
        ("version:\n", "1: version: must be 1 or 2, not ''"),
        ("- version: 1\n", "1: file: must have keys and values"),
        (
            "version: 1\nunknown: true\n",
            "2: unknown: unknown key; known: version, metrics, collection, sou",
        ),
        ("version: 1\ncollections: []\n", "2: collections: unknown key"),
        ("version: 2\ncollection: {}\n", "2: collection: unknown key"),
        ("version: 1\nversion: 1\n", "2: version: is given twice"),
        ("version: 1\nmetrics:\n  file: a\n  file: b\n", "4: file: is given twice"),
        ("version: 1\nmetrics:\n  file: a\n  fields: [b]\n", "4: fields: file and fields cannot both be given"),
        ("version: 1\nmetrics:\n  configMap: a\n", "3: configMap: unknown key; known: file, fields, enable"),
        ("version: 1\nmetrics:\n  fields: a\n", "3: fields: must be a list"),
        ("version: 1\ncollection:\n  interval: 30000\n", "3: interval: '30000' is not a duration such as 30s"),
        ("version: 1\ncollection:\n  interval: 500us\n", "3: interval: '500us' is not a whole number of milliseconds"),
        ("version: 1\ncollection:\n  interval: -1s\n", "3: interval: '-1s' is not a whole number of milliseconds"),
        ("version: 1\ncollection:\n  interval: 2h\n", "3: interval: '2h' is more than 3600 seconds"),
        (GROUP + "  - name: a\n    interval: 1s\n", "4: watchGroups: fields missing"),
        (GROUP + "  - {}\n", "4: watchGroups: name and interval and fields missing"),
        (
            GROUP + "  - {name: a, interval: 1s, fields: ['']}\n",
            "4: fields: must name fields",
        ),
        (
            GROUP + "  - {name: a, interval: 1s, fields: [b]}\n  - {name: a, interval: 2s, fields: [c]}\n",
            "5: watchGroups: the name 'a' is given twice",
        ),
        (
            f"version: 2\ncollections: [{EVERY % 'a'},\n {EVERY % 'b'}]\n",
            "2: collections: 'a' and 'b' both include every field",
        ),
        ("version: 2\nserver: {port: 1}\n", "2: port: unknown key; known: maxConcurrentScrapes"),
        ("version: 1\n---\nversion: 1\n", "2: but found another document"),
        ("version: [\n", "2: "),
        (b"version: 1 # \xff\n", " is not UTF-8 text"),
    ],
)
def test_a_mistake_is_one_message_with_file_line_and_key(file, tmp_path, text, message):
    with pytest.raises(ConfigFileError) as error:
        load(file(text))
    assert str(error.value).startswith(f"{tmp_path}/config.yaml:{message}")
    assert "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigFileError, match=r"none\.yaml: cannot be read: No such file or directory$"):
        load(tmp_path / "none.yaml")
    with pytest.raises(ConfigFileError, match=r": cannot be read: it is a directory, not a regular file$"):
        load(tmp_path)


LINES = (*V1.splitlines(True), *V2.splitlines(True), *INLINE.splitlines(True))
parts = st.sampled_from([*LINES, "  ", "- ", "[", "{", "*a\n", "&a ", "!!binary ", "? "])


def outcome(path):
    """The message about a file, or what it says."""
    try:
        return load(path)
    except ConfigError as error:
        return str(error)


@given(st.lists(parts, max_size=25).map("".join))
def test_any_text_is_a_configuration_or_one_message(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text)
    found = outcome(path)
    assert isinstance(found, NodeConfigFile) or (str(path) in found and "\n" not in found)
