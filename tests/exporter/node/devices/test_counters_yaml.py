"""A counters file may be YAML: the same list of fields as in dcgm-exporter's configuration file."""

import pytest

from exporter.config import ConfigFileError
from exporter.node.counters_watch import UnusableCountersError, load_counters
from exporter.node.devices.counters.counters_file import parse

TEMP = "- {name: DCGM_FI_DEV_GPU_TEMP, prometheusType: gauge, help: 'Degrees, in C.'}\n"
FILE = """\
# What is exposed.
fields:
  - name: DCGM_FI_DEV_GPU_TEMP
    prometheusType: gauge
    help: "Degrees, in C."
  - name: " DCGM_FI_DRIVER_VERSION "
    prometheusType: Label
  - name: DCGM_EXP_XID_ERRORS_COUNT
    prometheusType: gauge
    help: XIDs.
"""


def test_the_list_of_fields_is_read_as_the_rows_of_csv_are():
    csv = 'DCGM_FI_DEV_GPU_TEMP, gauge, "Degrees, in C."\nDCGM_FI_DRIVER_VERSION, label,\n'
    assert parse(FILE, "f.yaml") == parse(csv + "DCGM_EXP_XID_ERRORS_COUNT, gauge, XIDs.", "f.csv")


@pytest.mark.parametrize("text", [TEMP, "---\n" + TEMP, "\n # x\n\n" + TEMP, "fields:\n" + TEMP])
@pytest.mark.parametrize("file", ["metrics", "counters.yml", "counters.yaml"])
def test_yaml_is_recognized_by_its_first_words_or_by_the_name_of_the_file(text, file):
    assert [row.name for row in parse(text, file).rows] == ["DCGM_FI_DEV_GPU_TEMP"]
    assert parse(text, "counters.csv").rows == ()


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("- name: DCGM_FI_NO_SUCH\n  prometheusType: gauge", "unknown field 'DCGM_FI_NO_SUCH'"),
        ("- name: DCGM_FI_DEV_SM_CLOCK\n  prometheusType: bar", "type 'bar' of DCGM_FI_DEV_SM_CLOCK is not one of"),
        ("- name: DCGM_FI_DEV_SM_CLOCK", "fields: prometheusType missing of 'DCGM_FI_DEV_SM_CLOCK'"),
        ("- help: Clock.", "fields: name and prometheusType missing"),
        ("- name:\n  prometheusType: gauge", "fields: name missing"),
        ("- DCGM_FI_DEV_SM_CLOCK", "fields: must have keys and values"),
        ("- {name: [a], prometheusType: gauge}", "name: must be a text"),
        ("- {name: a, type: gauge}", "type: unknown key; known: name, prometheusType, help"),
        ("- {name: a, name: b}", "name: is given twice"),
        (TEMP.rstrip(), "DCGM_FI_DEV_GPU_TEMP is listed twice; the first row counts"),
    ],
)
def test_a_bad_item_costs_itself_and_is_reported_with_its_line(item, message):
    counters = parse(f"fields:\n{TEMP}\n\n{item}\n- name: DCGM_FI_DEV_MEM_CLOCK\n  prometheusType: gauge\n", "f.yaml")
    assert [row.name for row in counters.rows] == ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_MEM_CLOCK"]
    (problem,) = counters.problems
    assert problem.startswith(f"f.yaml, line 5: {message}")


def test_the_line_is_that_of_the_key_where_a_key_is_wrong():
    (problem,) = parse("- name: a\n  prometheusType: gauge\n  helm: b\n", "f").problems
    assert problem == "f, line 3: helm: unknown key; known: name, prometheusType, help"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fields: 5", "f.yaml:1: fields: must be a list"),
        ("fields:\nfields:\n", "f.yaml:2: fields: is given twice"),
        ("metrics: 5", "f.yaml:1: metrics: unknown key; known: fields"),
        ("words", "f.yaml:1: file: must have keys and values"),
        ("fields: [\n\n", "f.yaml:3: "),
        ("\udc80", "f.yaml: is not UTF-8 text"),
        ("[" * 10_000, "f.yaml:1: exceeded maximum nesting depth"),
    ],
)
def test_a_text_without_a_list_of_fields_is_one_message(text, message):
    with pytest.raises(ConfigFileError) as error:
        parse(text, "f.yaml")
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_the_message_about_a_file_that_is_no_yaml_names_file_and_line_and_the_response_does_not(tmp_path):
    path = tmp_path / "counters.yaml"
    path.write_text(f"fields:\n{TEMP}other: 5\n")
    with pytest.raises(UnusableCountersError) as error:
        load_counters(path)
    assert str(error.value) == f"counters file {path} cannot be used on line 3: other: unknown key; known: fields"
    assert error.value.for_response() == "the counters file is not a list of fields; the log names it"


@pytest.mark.parametrize("text", ["", "# nothing\n", "fields:\n", "fields: []\n"])
def test_a_file_without_a_field_cannot_be_used(tmp_path, text):
    (tmp_path / "counters.yaml").write_text(text)
    with pytest.raises(UnusableCountersError, match=r"no row of the counters file .+counters\.yaml can be used"):
        load_counters(tmp_path / "counters.yaml")
