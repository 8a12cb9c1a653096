"""`gpugauge mig check`: files of the MIG manager, nodes and geometries by hand."""

import json
from pathlib import Path

import pytest

from exporter import cli
from exporter.commands.mig.command import run
from exporter.config import ConfigError

GOLDEN = Path(__file__).parents[3] / "golden" / "mig"
CONFIG = """\
version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
  all-balanced:
    - device-filter: ["0x233010DE", "0x20B210DE"]
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.10gb": 2
        "2g.20gb": 1
        "3g.40gb": 1
  two-and-one:
    - device-filter: "0x233010DE"
      devices: [0, 1]
      mig-enabled: true
      mig-devices:
        "3g.40gb": 2
        "1g.10gb": 1
  compute-instances:
    - devices: all
      mig-enabled: true
      mig-devices: {"1c.3g.20gb": 5}
  unknown:
    - devices: all
      mig-enabled: true
      mig-devices: {"1g.24gb+gfx": 4}
"""


def checked(*words):
    return run(cli.parse(["mig", "check", *words], {}))


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(CONFIG)
    return "config.yaml"


def node(tmp_path, capacity, **labels):
    names = {"product": "nvidia.com/gpu.product", "count": "nvidia.com/gpu.count", "config": "nvidia.com/mig.config"}
    meta = {"name": "a", "labels": {names[key]: value for key, value in labels.items()}}
    (tmp_path / "nodes.json").write_text(
        json.dumps({"items": [{"kind": "Node", "metadata": meta, "status": {"capacity": capacity}}]})
    )
    return ["--node", "a", "--objects", str(tmp_path / "nodes.json")]


def test_each_configuration_of_a_file_is_judged(config, golden):
    text, fits = checked(config)
    golden(text, GOLDEN / "file.txt")
    assert not fits


def test_a_model_alone_lists_what_fits_it(golden):
    text, fits = checked("--model", "NVIDIA-H100-80GB-HBM3")
    golden(text, GOLDEN / "model.txt")
    assert fits


@pytest.mark.parametrize(("geometry", "fits"), [("3g.40gb=2", True), ("3g.40gb=2,1g.10gb", False), ("1g.10gb=7", True)])
def test_a_geometry_by_hand_is_judged(geometry, fits):
    assert checked("--model", "A100-80GB", "--geometry", geometry)[1] is fits


def test_a_node_is_judged_by_its_model_and_the_configuration_that_it_asks_for(config, tmp_path, golden):
    capacity = {"nvidia.com/mig-3g.40gb": "4", "nvidia.com/mig-1g.10gb.me": "0"}
    given = node(tmp_path, capacity, product="NVIDIA-H100-80GB-HBM3", count="2", config="two-and-one")
    text, fits = checked(config, *given)
    golden(text, GOLDEN / "node.txt")
    assert not fits


def test_a_node_whose_gpus_differ_is_said_to(tmp_path):
    given = node(tmp_path, {"nvidia.com/mig-1g.10gb": "3"}, product="NVIDIA-H100-80GB-HBM3", count="2")
    text, fits = checked(*given)
    assert "Its GPUs do not all have the same MIG devices" in text
    assert fits


def test_a_config_map_is_read_with_the_lines_of_the_file(tmp_path):
    text = "kind: ConfigMap\ndata:\n  config.yaml: |\n" + "".join(f"    {line}\n" for line in CONFIG.splitlines())
    file = tmp_path / "map.yaml"
    file.write_text(text)
    verdicts = json.loads(checked(str(file), "--json")[0])["verdicts"]
    line = next(each["line"] for each in verdicts if each["name"] == "two-and-one")
    assert "device-filter" in text.splitlines()[line - 1]
    file.write_text(text.replace('"3g.40gb": 2', '"3g.40gb": two'))
    with pytest.raises(ConfigError) as raised:
        checked(str(file))
    at = 1 + next(number for number, each in enumerate(text.splitlines()) if '"3g.40gb": 2' in each)
    assert str(raised.value) == f"{file}:{at}: 3g.40gb: 'two' is not a number of GPU instances"


def test_programs_get_the_places_and_the_problem(config):
    document = json.loads(checked(config, "--json")[0])
    first = next(each for each in document["verdicts"] if each["name"] == "all-balanced")
    assert (first["fits"], first["model"]) == (True, "H100-80GB")
    assert {"profile": "3g.40gb", "start": 4} in first["placement"]
    unknown = next(each for each in document["verdicts"] if each["name"] == "unknown")
    assert unknown["fits"] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "config.yaml:1: file: has no mig-configs: it is no configuration of the MIG manager"),
        ("mig-configs: {}", "config.yaml:1: mig-configs: has no configuration"),
        ("mig-configs:\n  a:\n  - devices: all", "config.yaml:3: a: has no mig-enabled"),
        ("mig-configs:\n  a:\n  - mig-enabled: maybe", "config.yaml:3: mig-enabled: must be true or false"),
        ("mig-configs:\n  a:\n  - mig-enabld: true", "config.yaml:3: mig-enabld: unknown key; known: "),
        (
            "mig-configs:\n  a:\n  - mig-enabled: true\n    mig-devices:\n      3g: 1",
            "config.yaml:5: 3g: is not a profile such as 3g.40gb",
        ),
        (
            "mig-configs:\n  a:\n  - mig-enabled: false\n    mig-devices:\n      3g.40gb: 1",
            "config.yaml:5: mig-devices: has GPU instances although mig-enabled is false",
        ),
        ("kind: ConfigMap\ndata: {a: b, c: d}", "config.yaml:1: file: the ConfigMap has 2 texts, not one"),
    ],
)
def test_a_mistake_in_the_file_is_one_message_with_its_line(config, text, message):
    Path(config).write_text(text)
    with pytest.raises(ConfigError) as raised:
        checked(config)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "mig check needs a file, --geometry, --model or --node"),
        (["a", "b"], "mig takes the word check and at most one file"),
        (["--model", "L40S"], "--model: 'L40S' is none of A30-24GB, "),
        (["--model", "A30", "--geometry", "huge"], "--geometry: huge: is not a profile such as 3g.40gb"),
        (["nowhere.yaml"], "nowhere.yaml: cannot be read"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_message(words, message):
    with pytest.raises(ConfigError) as raised:
        checked(*words)
    assert str(raised.value).startswith(message)


def test_a_node_that_is_not_known_or_asks_for_what_the_file_lacks_is_one_message(config, tmp_path):
    given = node(tmp_path, {}, product="NVIDIA-H100-80GB-HBM3", config="gone")
    with pytest.raises(ConfigError, match=r"config\.yaml: has no configuration 'gone', which node a asks for"):
        checked(config, *given)
    with pytest.raises(ConfigError, match="node b is not known, or may not be read"):
        checked(*[word if word != "a" else "b" for word in given])
