"""The image is built from the Dockerfile, and its programs run in it: with no capability, on a read-only root."""

import http.client
import json
import re
import subprocess

import pytest
import yaml

from simulators.api_server import SimulatedApiServer
from simulators.objects import node, pod
from tests.deploy.built_image import ImageBuild, missing, running, serving
from tests.waiting import until

REASON = missing()
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.xdist_group("image"),
    pytest.mark.skipif(bool(REASON), reason=REASON),
]
SIMULATED = ("--source", "simulated", "--address", "127.0.0.1:0")
NOBODY = 65532
LARGEST_ENVIRONMENT = 110
"""MiB. It takes 100."""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    started = ImageBuild(tmp_path_factory.mktemp("image"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def image(build):
    return build.build()


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("user", [0, NOBODY])
@pytest.mark.parametrize("words", [(), ("node",), ("dcgm-exporter",)], ids=["flags alone", "node", "dcgm-exporter"])
def test_the_entry_point_starts_the_node_exporter_whatever_the_first_word_is(image, words, user):
    with running(image, user, *image.config["Entrypoint"], *words, *SIMULATED) as container:
        port = serving(container)
        until(lambda: "DCGM_FI_DEV_GPU_UTIL{" in get(port, "/metrics")[1])
        assert get(port, "/health")[0] == 200


@pytest.mark.parametrize("program", ["/usr/bin/dcgm-exporter", "gpugauge"])
def test_the_program_has_the_names_that_manifests_start(image, program):
    with running(image, NOBODY, program, *SIMULATED) as container:
        assert get(serving(container), "/metrics")[0] == 200


@pytest.mark.parametrize("name", ["default-counters.csv", "dcp-metrics-included.csv", "1.x-compatibility-metrics.csv"])
def test_the_counters_files_of_the_gpu_operator_are_in_the_image_and_usable(image, name):
    path = f"/etc/dcgm-exporter/{name}"
    assert (image.root / path[1:]).is_file()
    with running(image, NOBODY, "gpugauge", "check-config", path) as container:
        assert container.process.wait(60) == 0


def test_the_watcher_starts_in_the_image_and_says_that_it_has_no_api_server(image):
    with running(image, NOBODY, "gpugauge", "cluster", "--address", "127.0.0.1:0") as container:
        assert container.process.wait(60) == 2
    assert "API server" in "".join(container.output)


@pytest.fixture
def cluster(image):
    """An API server with a pending GPU pod, and a kubeconfig for it in the image's only writable folder."""
    server = SimulatedApiServer(token="secret")
    server.start()
    server.put("nodes", node("node-1", {"nvidia.com/gpu": "8"}))
    server.put("pods", pod("train-0", "ml", {"nvidia.com/gpu": 16}))
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server.url}}],
        "users": [{"name": "test", "user": {"token": "secret"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    place = image.root / "etc/gpugauge-test-kubeconfig"
    place.write_text(yaml.safe_dump(document))
    yield ("--kubeconfig", "/etc/gpugauge-test-kubeconfig")
    place.unlink()
    server.stop()


def test_the_watcher_reads_a_cluster_without_the_classes_of_the_api_that_were_left_out(image, cluster):
    with running(image, NOBODY, "gpugauge", "cluster", *cluster, "--address", "127.0.0.1:0") as container:
        port = serving(container)
        until(lambda: 'gpugauge_pending_pods{namespace="ml"' in get(port, "/metrics")[1])


def test_a_pod_is_explained_in_the_image(image, cluster):
    with running(image, NOBODY, "gpugauge", "explain", "ml/train-0", *cluster) as container:
        assert container.process.wait(60) == 0, "".join(container.output)
    assert "ml/train-0" in "".join(container.output)


def test_the_packages_are_small(image):
    """In MiB. Two thirds of what is installed were classes of the Kubernetes API that nobody imports."""
    files = (path.lstat().st_size for path in (image.root / "opt/gpugauge").rglob("*"))
    assert sum(files) >> 20 <= LARGEST_ENVIRONMENT


def test_the_bill_of_materials_is_in_the_image_and_names_what_is_installed(image):
    place = image.config["Labels"]["io.gpugauge.sbom"]
    named = {each["purl"] for each in json.loads((image.root / place[1:]).read_text())["components"]}
    assert named == {f"pkg:pypi/{name}@{version}" for name, version in installed(image)}


def installed(image):
    """The packages in the image, but gpugauge itself."""
    packages = image.root / "opt/gpugauge/lib/python3.11/site-packages"
    for place in packages.glob("*.dist-info/METADATA"):
        head = dict(re.findall(r"^(Name|Version): (\S+)$", place.read_text(), re.MULTILINE))
        if head["Name"] != "gpugauge":
            yield re.sub(r"[-_.]+", "-", head["Name"]).lower(), head["Version"]


def test_the_image_has_no_build_tools_and_no_package_of_development(image):
    folder = image.root / "opt/gpugauge/lib/python3.11/site-packages"
    packages = {path.name.split("-")[0].lower() for path in folder.iterdir()}
    assert {"prometheus_client", "kubernetes", "grpcio"} <= packages
    assert not packages & {"pip", "setuptools", "hatchling", "pytest", "mypy", "grafanalib"}


def test_labels_and_variables_are_those_of_the_dockerfile(image):
    assert image.config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert image.environment["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert image.config.get("User", "") == ""


def test_nothing_of_the_checkout_but_the_package_is_in_the_image(image):
    found = subprocess.run(
        ["find", image.root, "-name", "tests", "-path", "*gpugauge*"], check=True, capture_output=True, text=True
    )
    assert "gpugauge/tests" not in found.stdout


def test_two_builds_are_equal(build, image):
    assert build.build_again("first") == build.build_again("second")
