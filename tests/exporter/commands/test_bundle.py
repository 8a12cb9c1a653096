"""`gpugauge bundle` writes what a checkout has in `deploy`, and so does the program of an installed wheel."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from alerts.__main__ import files as rule_files
from alerts.__main__ import routing
from dashboards import DASHBOARDS
from dashboards.__main__ import files as dashboard_files
from exporter import cli
from exporter.commands.bundle import bundle
from exporter.config import ConfigError

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
LABEL = "k8s_cluster"


def tree(folder):
    """The content of every file, by path; links are what they lead to."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            found |= {f"{path.name}/{name}": content for name, content in tree(path).items()}
        else:
            found[path.name] = path.read_bytes()
    return found


def written(folder, *flags):
    text = bundle(cli.parse(["bundle", str(folder), *flags], {}))
    assert text.startswith(f"{len(tree(folder))} files in {folder}\n")
    return tree(folder)


def test_every_file_of_the_checkout_is_written_and_no_link(tmp_path):
    assert written(tmp_path / "new" / "folder") == tree(DEPLOY)
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))


def test_the_cluster_label_is_renamed_as_by_the_generators(tmp_path):
    found = written(tmp_path, "--cluster-label", LABEL)
    expected = {**rule_files(cluster_label=LABEL), **dashboard_files(DASHBOARDS, LABEL)}
    assert {name: found[f"generated/{name}"].decode() for name in expected} == expected
    assert found["generated/rules/nodes.yaml"] != (DEPLOY / "generated/rules/nodes.yaml").read_bytes()
    assert routing().keys() <= expected.keys()


def test_the_chart_renames_the_cluster_label_by_its_value(tmp_path):
    found, before = written(tmp_path, "--cluster-label", LABEL), tree(DEPLOY)
    chart = {name for name in before if name.startswith("helm/")}
    assert {name for name in chart if found[name] != before[name]} == {"helm/gpugauge/values.yaml"}
    assert f"\nclusterLabel: {LABEL}\n" in found["helm/gpugauge/values.yaml"].decode()


def test_files_that_are_there_are_overwritten_and_others_stay(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "kustomization.yaml").write_text("old")
    bundle(cli.parse(["bundle", str(tmp_path)], {}))
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (tmp_path / "kustomization.yaml").read_bytes() == (DEPLOY / "kustomization.yaml").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs one folder"),
        (["a", "b"], "needs one folder"),
        (["a", "--cluster-label", "k8s-cluster"], "--cluster-label: 'k8s-cluster' is no name of a label"),
    ],
)
def test_a_mistake_is_one_message_and_writes_nothing(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        bundle(cli.parse(["bundle", *words], {}))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file.*: cannot be written: "):
        bundle(cli.parse(["bundle", str(tmp_path / "file")], {}))


def wheel(folder):
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True, timeout=600)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    return [wheel(tmp_path_factory.mktemp("wheel")) for _ in range(2)]


@pytest.mark.slow
def test_a_wheel_that_is_built_twice_is_the_same(wheels):
    first, second = wheels
    assert first.read_bytes() == second.read_bytes()
    assert first.name == second.name


@pytest.mark.slow
def test_a_wheel_has_no_tests_and_no_bytecode(wheels):
    names = zipfile.ZipFile(wheels[0]).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"exporter", "gpugauge"}
    assert [name for name in names if name.endswith(".pyc")] == []


@pytest.mark.slow
def test_the_program_of_an_installed_wheel_writes_the_same(wheels, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=600)
    python = tmp_path / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheels[0]]
    subprocess.run(install, check=True, timeout=600)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))  # whose own .pth files are not read
    command = [tmp_path / "venv" / "bin" / "gpugauge", "bundle", tmp_path / "out"]
    subprocess.run(command, check=True, timeout=600, cwd=tmp_path)
    assert tree(tmp_path / "out") == tree(DEPLOY)
