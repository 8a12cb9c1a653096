"""The image has what users of dcgm-exporter and of the GPU Operator expect, and the Dockerfile finds what it copies."""

import fnmatch
import re

from exporter.node.config import DEFAULT_COUNTERS
from tests.deploy.image import environment, instructions, last_stage
from tests.deploy.manifests import ROOT, container


def copies():
    return [text.split() for name, text in instructions() if name == "COPY" and not text.startswith("--from")]


def of_last_stage(wanted):
    return [text for name, text in last_stage() if name == wanted]


def test_everything_that_is_copied_exists_and_is_in_the_build_context():
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for *sources, _ in copies():
        for source in sources:
            assert (ROOT / source).exists(), source
            assert any(fnmatch.fnmatch(source, f"{pattern}*") for pattern in allowed), source


def test_the_counters_files_are_where_the_gpu_operator_expects_them():
    (copy,) = [(sources, to) for *sources, to in copies() if to == "/etc/dcgm-exporter/"]
    names = {source.rsplit("/", 1)[1] for source in copy[0]}
    assert names == {"default-counters.csv", "dcp-metrics-included.csv", "1.x-compatibility-metrics.csv"}
    assert DEFAULT_COUNTERS == "/etc/dcgm-exporter/default-counters.csv"


def test_the_variables_make_the_container_runtime_inject_devices_and_libraries():
    assert environment() == {
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility,compat32",
        "NVIDIA_DISABLE_REQUIRE": "true",
    }


def test_the_entry_point_is_gpugauge_without_arguments():
    assert of_last_stage("ENTRYPOINT") == ['["gpugauge"]']
    assert of_last_stage("CMD") == []


def test_a_manifest_that_starts_dcgm_exporter_by_name_or_path_starts_gpugauge():
    (commands,) = of_last_stage("RUN")
    links = dict(reversed(pair.split()) for pair in re.findall(r"ln -s (\S+ \S+)", commands))
    assert links["/usr/bin/dcgm-exporter"] == links["/usr/local/bin/gpugauge"] == "/opt/gpugauge/bin/gpugauge"


def test_the_ports_of_the_manifests_are_exposed():
    declared = {
        str(port["containerPort"])
        for kind, name in (("DaemonSet", "gpugauge-node"), ("Deployment", "gpugauge-cluster"))
        for port in container(kind, name)["ports"]
    }
    (exposed,) = of_last_stage("EXPOSE")
    assert set(exposed.split()) == declared


def test_no_user_is_set_because_the_gpu_operator_sets_none_and_the_kubelet_accepts_only_root():
    assert of_last_stage("USER") == []


def test_packages_are_pinned_by_hash_and_nothing_else_is_downloaded():
    runs = " ".join(text for name, text in instructions() if name == "RUN")
    from_index = [part for part in runs.split("&&") if "pip install" in part and "wheels/" not in part]
    assert len(from_index) == 2
    assert all("--require-hashes" in part for part in from_index)
    assert not re.search(r"\b(curl|wget|apt-get)\b", runs)


def test_the_build_backend_comes_from_the_development_lock_with_its_dependencies():
    (text,) = [text for name, text in instructions() if name == "RUN" and "awk" in text]
    names = re.search(r"\^\(([a-z|-]+)\)==", text)[1].split("|")
    lock = (ROOT / "requirements-dev.lock").read_text()
    assert all(re.search(rf"^{name}==", lock, re.MULTILINE) for name in names)
    locked = re.findall(r"^(\S+)==.*?(?=^\S)", lock, re.MULTILINE | re.DOTALL)
    assert set(names) <= set(locked)
    assert "hatchling" in names
