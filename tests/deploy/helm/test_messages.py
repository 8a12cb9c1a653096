"""What ends rendering with a message, and what is printed after an installation."""

import re
import subprocess

import pytest

from tests.deploy.helm.chart import CHART, HELM, IMAGE, NEEDS_HELM, merged, nested, notes, refused, rendered
from tests.deploy.helm.combinations import AUTH

pytestmark = NEEDS_HELM

TLS = nested(tls__enabled=True, tls__existingSecret="s")
HASH = "$2b$04$" + "a" * 53
IMPOSSIBLE = {
    "image.repository is not set": nested(image__repository=""),
    "source: nvml does not read a host engine": nested(source="nvml", hostEngine__address="engine:5555"),
    "localhost:5555 is the pod itself": nested(hostEngine__address="localhost:5555"),
    "counters.existingConfigMap.name is in place": nested(counters__existingConfigMap__name="c", counters__extra="x"),
    "counters.extra adds to the default counters": nested(counters__csv="x", counters__extra="x"),
    "auditLog.enabled needs attribution.enabled=true": nested(attribution__enabled=False, auditLog__enabled=True),
    "podMetadata.source needs attribution": nested(attribution__enabled=False, podMetadata__source="api"),
    "processMetrics.enabled needs what restricted=true leaves out": nested(
        restricted=True, processMetrics__enabled=True
    ),
    "stateFile.enabled needs what restricted=true": nested(restricted=True, stateFile__enabled=True),
    "unix:// needs what restricted=true": nested(restricted=True, hostEngine__address="unix:///run/dcgm/socket"),
    "need podMetadata.source: api or kubelet": nested(podMetadata__labels=["app"]),
    "dra.adminClaim.enabled is in place of node.runtimeClassName": nested(
        dra__adminClaim__enabled=True, node__runtimeClassName="nvidia"
    ),
    "node.affinity.nodeAffinity is in place of node.nodeSelection": nested(node__affinity__nodeAffinity={"a": []}),
    "node.serviceAccount.name is needed": nested(node__serviceAccount__create=False),
    "tls.enabled needs one of": nested(tls__enabled=True),
    "tls.enabled needs one of tls.existingSecret and": nested(
        tls__enabled=True, tls__existingSecret="s", tls__certManager__enabled=True
    ),
    "needs tls.certManager.issuerRef.name": nested(tls__enabled=True, tls__certManager__enabled=True),
    "need tls.enabled=true": nested(tls__existingSecret="s"),
    "needs basicAuth.username and basicAuth.passwordHash": nested(
        basicAuth__enabled=True, basicAuth__existingSecret="s"
    ),
    "needs basicAuth.existingSecret, from which": nested(basicAuth__enabled=True, basicAuth__passwordHash=HASH),
    "need basicAuth.enabled=true": nested(basicAuth__passwordHash=HASH),
    "monitoring.scrapeTimeout: 30s is longer than monitoring.interval: 15s": nested(
        monitoring__interval="15s", monitoring__scrapeTimeout="30s"
    ),
    "each pod would be scraped twice": nested(node__podAnnotations={"prometheus.io/scrape": "true"}),
    "service.annotations has prometheus.io/scrape": nested(
        monitoring__discovery="annotations", service__annotations={"prometheus.io/scrape": "true"}
    ),
    "kubeStateMetrics stands in for the watcher": nested(rules__adapters__kubeStateMetrics=True),
    "grafanaOperator.enabled needs dashboards.enabled=true": nested(
        dashboards__enabled=False, dashboards__grafanaOperator__enabled=True
    ),
    "needs tls.enabled=true: Prometheus sends its token": nested(auth=AUTH),
    "auth.mode: kubernetes is in place of basicAuth.enabled": merged(
        nested(auth=AUTH, basicAuth__enabled=True, basicAuth__passwordHash=HASH, basicAuth__existingSecret="s"), TLS
    ),
    "needs auth.proxy.image": merged(nested(auth=AUTH, auth__proxy__image=""), TLS),
    "auth.prometheus.serviceAccount needs both": merged(
        nested(auth=AUTH, auth__prometheus__serviceAccount__namespace=""), TLS
    ),
    "needs auth.prometheus.tokenSecret.name": merged(nested(auth=AUTH, auth__prometheus__tokenSecret__name=""), TLS),
    "report.enabled needs report.prometheus.url and report.volume": nested(report__enabled=True),
    "report.forms: pdf is none of": nested(report__forms=["pdf"]),
    "rules.thresholds.GPUPodLow: there is no such threshold; there are GPUPodLowUtilization": nested(
        rules__thresholds={"GPUPodLow": 0.1}
    ),
}


@pytest.mark.parametrize("message", IMPOSSIBLE)
def test_an_impossible_combination_ends_with_a_message(message):
    assert message in refused(merged(IMAGE, IMPOSSIBLE[message]))


def test_every_check_of_the_chart_is_tried_here():
    checks = re.findall(r"\(?fail ", "".join(each.read_text() for each in (CHART / "templates").iterdir()))
    assert len(IMPOSSIBLE) >= len(checks)


def test_only_the_rules_and_dashboards_need_no_image():
    objects = rendered(nested(image__repository="", node__enabled=False, watcher__enabled=False))
    assert {kind for kind, _ in objects} == {"ConfigMap", "PrometheusRule"}


def test_helm_finds_nothing_to_complain_about():
    done = subprocess.run(
        [HELM, "lint", "--strict", "--set", "image.repository=gpugauge", str(CHART)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_notes_say_what_is_missing_and_what_is_needed():
    assert "enforce=privileged" in notes()
    assert "SYS_ADMIN" in notes()
    assert "SYS_ADMIN" not in notes(nested(source="nvml"))
    restricted = notes(nested(restricted=True))
    assert "which pod each GPU is allocated to" in restricted
    assert "enforce=privileged" not in restricted
    assert "admin-access=true" in notes(nested(dra__adminClaim__enabled=True))
    assert "label job" in notes(nested(monitoring__discovery="annotations"))
