"""What the configuration file says is used where neither a flag nor a variable says it."""

import time

import pytest

from exporter import cli
from exporter.config import ConfigError
from exporter.node.config import node_config
from exporter.node.counters_source import counters_name, counters_source
from exporter.node.program import NodeProgram

FIELDS = "  fields:\n    - {name: DCGM_FI_DEV_GPU_TEMP, prometheusType: gauge, help: T}\n"
FILE = "version: 1\nmetrics:\n  file: of-the-file.csv\ncollection:\n  interval: 45s\n"
GROUP = "  watchGroups:\n    - {name: fast, interval: 5s, fields: [DCGM_FI_DEV_GPU_TEMP, none]}\n"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.yaml"

    def make(text, *flags, **variables):
        path.write_text(text)
        arguments = cli.parse(["--config-file", str(path), *flags], variables)
        return node_config(arguments, variables | {"NODE_NAME": "node-1"})

    return make


@pytest.mark.parametrize("flag", [True, False])
def test_a_flag_or_variable_comes_before_the_file_and_the_file_before_the_default(config, tmp_path, flag):
    found = config(FILE)
    assert (str(found.counters_file), found.interval) == ("of-the-file.csv", 45.0)
    if flag:
        found = config(FILE, "-f", "named.csv", "-c", "30000")
    else:
        found = config(FILE, DCGM_EXPORTER_COLLECTORS="named.csv", DCGM_EXPORTER_INTERVAL="30000")
    assert (str(found.counters_file), found.interval) == ("named.csv", 30.0)
    found = config("version: 1\n")
    assert (found.counters_file, found.fields, found.interval) == (None, None, 30.0)


def test_the_file_may_be_named_by_its_variable(tmp_path):
    (tmp_path / "config.yaml").write_text(FILE)
    variables = {"DCGM_EXPORTER_CONFIG_FILE": str(tmp_path / "config.yaml")}
    assert node_config(cli.parse([], variables), variables).interval == 45.0


def test_a_named_counters_file_comes_before_the_fields_of_the_file(config):
    text = "version: 1\nmetrics:\n" + FIELDS
    assert config(text).fields is not None
    found = config(text, "-f", "named.csv")
    assert (found.fields, str(found.counters_file)) == (None, "named.csv")


def test_watch_groups_set_the_pace_and_short_intervals_are_raised(config):
    found = config(FILE + GROUP)
    assert (found.interval, found.pace.default) == (5.0, 45.0)
    assert found.warnings == ()
    found = config(FILE + GROUP.replace("5s", "50ms"))
    assert (found.interval, found.pace.groups[0].seconds) == (0.1, 0.1)
    assert found.warnings == ("a collection interval of 50 ms is too short: 100 ms are used",)


def test_a_mistake_in_the_file_ends_the_program_with_its_message(config, tmp_path):
    with pytest.raises(ConfigError, match=r"config\.yaml:2: interval: unknown key"):
        config("version: 1\ninterval: 5s\n")
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: No such file"):
        node_config(cli.parse(["--config-file", str(tmp_path / "none.yaml")], {}), {})


def up(program, seconds=60.0):
    """The first snapshot of a source that is up."""
    end = time.monotonic() + seconds
    while not (snapshot := program.collect()).health[0].up:
        assert time.monotonic() < end, snapshot.health
        time.sleep(0.05)
    return snapshot


@pytest.fixture
def program(config):
    made = []

    def make(text):
        made.append(NodeProgram(config(text, "--source", "simulated", "-c", "5000")))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_fields_of_the_file_are_exposed_and_its_bad_rows_are_counted(program, caplog, tmp_path):
    made = program("version: 1\nmetrics:\n" + FIELDS + "    - {name: DCGM_FI_NO, prometheusType: gauge}\n")
    names = [family.metric.name for family in up(made).families if family.metric.name.startswith("DCGM_")]
    assert names == ["DCGM_FI_DEV_GPU_TEMP"]
    assert made.config_state.rejected_rows == 1
    assert f"{tmp_path}/config.yaml, line 5: unknown field 'DCGM_FI_NO'" in caplog.messages
    made.reload()
    made.collect()
    assert made.config_state.successful


def test_without_a_field_that_can_be_used_it_runs_unready(program):
    made = program("version: 1\nmetrics:\n  fields:\n    - {name: DCGM_FI_NO, prometheusType: gauge}\n")
    assert made.unready() == "the counters file has no row that can be used; the log names it"


def test_a_pattern_that_no_row_has_is_named_in_the_log(program, caplog, tmp_path):
    program("version: 1\nmetrics:\n" + FIELDS + "collection:\n" + GROUP)
    assert f"{tmp_path}/config.yaml:7: no row of the counters file has a name like 'none' of 'fast'" in caplog.messages


def test_fields_of_the_file_are_never_due(config):
    source = counters_source(config("version: 1\nmetrics:\n" + FIELDS), time.monotonic)
    assert (source.due(), source.failure) == (False, "")
    assert source.read().sha256 == source.read().sha256


def test_messages_name_where_the_counters_are_from(config, tmp_path):
    assert counters_name(config("version: 1\nmetrics:\n" + FIELDS)) == f"configuration file {tmp_path}/config.yaml"
    assert counters_name(config(FILE)) == "counters file of-the-file.csv"
