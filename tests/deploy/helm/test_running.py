"""The chart's command lines start the programs, and a real Prometheus scrapes them with the monitors' settings."""

import base64
import ssl
import urllib.error
import urllib.request
from contextlib import contextmanager, nullcontext

import bcrypt
import pytest
import trustme

from tests.dashboards.prometheus import eventually, query, scraping
from tests.deploy.helm.chart import NEEDS_HELM, NODE, WATCHER, container, nested, pod, rendered
from tests.deploy.image import environment
from tests.deploy.running import running
from tests.exporter.web.test_tls import issue
from tests.waiting import until

pytestmark = [*NEEDS_HELM, pytest.mark.process, pytest.mark.prometheus]

PASSWORD = "a-password-of-the-test"
TLS = nested(tls__enabled=True, tls__existingSecret="certificate", tls__serverName="localhost")
BASIC = nested(
    basicAuth__enabled=True,
    basicAuth__passwordHash=bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode(),
    basicAuth__existingSecret="password",
)
ACCESS = {"off": {}, "basic": BASIC, "TLS": TLS, "both": {**TLS, **BASIC}}
ON_EVERYTHING = nested(
    auditLog__enabled=True,
    stateFile__enabled=True,
    counters__csv="DCGM_FI_DEV_GPU_TEMP, gauge, Temperature of the test.\n",
    resourceNames=["example.com/gpu"],
)


def mounted(objects, folder, workload=NODE):
    """Write the ConfigMaps and Secrets that a pod mounts below a folder, and its folders of the node.

    Returns the path on this machine of each that the container has.
    """
    volumes = {each["name"]: each for each in pod(objects, workload)["volumes"]}
    places = {}
    for mount in container(objects, workload)["volumeMounts"]:
        volume, place = volumes[mount["name"]], folder / mount["name"]
        place.mkdir(exist_ok=True)
        places[mount["mountPath"]] = str(place)
        if "configMap" in volume:
            made = objects.get(("ConfigMap", volume["configMap"]["name"]))
            for name, text in made["data"].items():
                (place / name).write_text(text)
        if made := objects.get(("Secret", volume.get("secret", {}).get("secretName"))):
            for name, text in made["stringData"].items():
                (place / name).write_text(moved(text, {"/etc/gpugauge/tls": str(folder / "tls")}))
    return places


def moved(text, places):
    """A text with the paths of the container replaced by those of this machine."""
    for path, place in places.items():
        if path != "/tmp":
            text = text.replace(path, place)
    return text


@contextmanager
def started(objects, folder, workload=NODE, *more):
    """The program of a workload, with the arguments, variables and files that its container has."""
    only, places = container(objects, workload), mounted(objects, folder, workload)
    declared = only["ports"][0]["containerPort"]
    assert f"--address=:{declared}" in only["args"]
    arguments = [moved(each, places).replace(f":{declared}", "127.0.0.1:0") for each in only["args"]]
    variables = {each["name"]: moved(each.get("value", "node-7"), places) for each in only.get("env", ())}
    with running([*arguments, *more], {**environment(), **variables}) as program:
        yield program


def probe(program, only, kind):
    """The status that the kubelet would get: it verifies no certificate and sends no password."""
    asked = only[f"{kind}Probe"]["httpGet"]
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    url = f"{asked.get('scheme', 'HTTP').lower()}://127.0.0.1:{program.port}{asked['path']}"
    try:
        with urllib.request.urlopen(url, context=context, timeout=60) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def access(endpoint, secrets):
    """What the Prometheus Operator makes of an endpoint: settings of a scrape, with the files of its secrets."""
    settings = {"honor_labels": endpoint["honorLabels"], "scheme": endpoint.get("scheme", "http")}
    if tls := endpoint.get("tlsConfig"):
        reference = tls["ca"]["secret"]
        file = secrets / f"{reference['name']}.{reference['key']}"
        settings["tls_config"] = {"server_name": tls["serverName"], "ca_file": str(file)}
    if basic := endpoint.get("basicAuth"):
        name, password = (secrets / f"{basic[key]['name']}.{basic[key]['key']}" for key in ("username", "password"))
        settings["basic_auth"] = {"username": name.read_text(), "password_file": str(password)}
    return settings


@pytest.fixture
def secrets(tmp_path):
    """The files of the secrets that the values name, and the certificate where the exporter reads it."""
    authority = trustme.CA()
    for name in ("tls", "secrets"):
        (tmp_path / name).mkdir()
    issue(authority, tmp_path / "tls")
    authority.cert_pem.write_to_path(tmp_path / "secrets/certificate.ca.crt")
    (tmp_path / "secrets/password.username").write_text("prometheus")
    (tmp_path / "secrets/password.password").write_text(PASSWORD)
    return tmp_path / "secrets"


@pytest.mark.parametrize("discovery", ["podMonitor", "serviceMonitor"])
@pytest.mark.parametrize("name", ACCESS)
def test_report_58_probes_answer_and_prometheus_scrapes_with_the_settings_of_the_monitor(
    name, discovery, secrets, tmp_path
):
    objects = rendered({**ACCESS[name], "source": "simulated", "monitoring": {"discovery": discovery}})
    kind, key = ("PodMonitor", "podMetricsEndpoints") if discovery == "podMonitor" else ("ServiceMonitor", "endpoints")
    (endpoint,) = objects[kind, NODE[1]]["spec"][key]
    job = {each["targetLabel"]: each.get("replacement") for each in endpoint["relabelings"]}["job"]
    with started(objects, tmp_path) as program:
        for probed in ("liveness", "readiness"):
            until(lambda probed=probed: probe(program, container(objects), probed) == 200)
        (tmp_path / "prometheus").mkdir()
        settings, address = access(endpoint, secrets), f"127.0.0.1:{program.port}"
        with scraping(tmp_path / "prometheus", {"/metrics": {"job": job}}, address, {}, settings) as base:
            scraped = 'up{job="gpugauge-node"} == 1 and on (job) gpugauge_device_info'
            eventually(lambda: bool(query(base, "query", query=scraped)), "Prometheus has scraped")
        with nullcontext() if name == "off" else pytest.raises(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{program.port}/metrics", timeout=60).close()


def test_report_58_no_password_is_in_any_object():
    objects = rendered(ACCESS["both"])
    assert PASSWORD not in str(objects)
    hashed = [name for name, each in objects.items() if BASIC["basicAuth"]["passwordHash"] in str(each)]
    assert hashed == [("Secret", "gpugauge-web-config")]
    assert base64.b64encode(PASSWORD.encode()).decode() not in str(objects)


def test_the_node_exporter_starts_with_everything_that_can_be_on_together(secrets, tmp_path):
    objects = rendered({**ON_EVERYTHING, "source": "simulated"})
    with started(objects, tmp_path) as program:
        program.until("/metrics", "gpugauge_device_info{", 'node="node-7"')
        exposition = program.until("/metrics", "gpugauge_audit_last_write_timestamp_seconds{")
        assert "# HELP DCGM_FI_DEV_GPU_TEMP Temperature of the test." in exposition
        assert "DCGM_FI_DEV_FB_USED{" not in exposition
        assert program.stop() == 0
    assert (tmp_path / "audit-log/audit.jsonl").exists()
    assert (tmp_path / "state/state.json").exists()


def test_the_restricted_node_exporter_starts_and_asks_no_kubelet(tmp_path):
    objects = rendered(nested(restricted=True, source="nvml"))
    with started(objects, tmp_path) as program:
        exposition = program.until("/metrics", 'gpugauge_source_up{node="node-7",source="nvml"}')
        assert 'source="kubelet"' not in exposition


def test_the_watcher_starts_with_prices_and_names_of_labels(secrets, tmp_path):
    prices = [{"model": "NVIDIA-A100", "currency": "EUR", "per_hour": 1.5, "valid_from": "2026-01-01"}]
    values = nested(
        watcher__prices=prices, watcher__namespaceLabels={"team": "squad"}, watcher__nodeLabels={"zone": "z"}
    )
    objects = rendered(values)
    with started(objects, tmp_path, WATCHER, "--api-server=http://127.0.0.1:1") as program:
        program.until("/metrics", "gpugauge_price_per_hour{", 'currency="EUR"')
        assert program.get("/readyz")[0] == 503
