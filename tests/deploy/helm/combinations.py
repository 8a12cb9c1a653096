"""Combinations of the chart's values in which every two choices that are possible together appear together."""

from itertools import combinations, product

from tests.deploy.helm.chart import merged, nested

HASH = "$2b$04$" + "a" * 53
PEERS = [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
REPORT = {
    "enabled": True,
    "prometheus": {"url": "http://prometheus:9090"},
    "volume": {"persistentVolumeClaim": {"claimName": "reports"}},
}
AUTH = {
    "mode": "kubernetes",
    "proxy": {"image": "registry.example/kube-rbac-proxy:v0.20.0"},
    "prometheus": {"serviceAccount": {"name": "p", "namespace": "m"}, "tokenSecret": {"name": "t"}},
}
CHOICES = {
    "source": [{}, nested(source="nvml"), nested(source="dcgm")],
    "engine": [{}, nested(hostEngine__address="$(NODE_IP):5555"), nested(hostEngine__address="unix:///run/dcgm/s")],
    "profiling": [{}, nested(profiling__enabled=False)],
    "restricted": [{}, nested(restricted=True)],
    "attribution": [{}, nested(attribution__enabled=False)],
    "metadata": [
        {},
        nested(podMetadata__source="api", podMetadata__labels=["app"], podMetadata__uid=True),
        nested(podMetadata__source="kubelet", podMetadata__annotations=["a"], podMetadata__kubeletInsecureTLS=True),
    ],
    "dra": [{}, nested(dra__enabled=True)],
    "claim": [{}, nested(dra__adminClaim__enabled=True)],
    "runtime": [{}, nested(node__runtimeClassName="nvidia")],
    "processes": [{}, nested(processMetrics__enabled=True)],
    "audit": [{}, nested(auditLog__enabled=True)],
    "state": [{}, nested(stateFile__enabled=True)],
    "counters": [
        {},
        nested(counters__csv="DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n"),
        nested(counters__extra="DCGM_FI_DEV_FAN_SPEED, gauge, Fan speed.\n"),
        nested(counters__existingConfigMap__name="ours"),
    ],
    "node": [{}, nested(node__enabled=False)],
    "selection": [
        {},
        nested(node__nodeSelection__enabled=False, node__nodeSelector={"pool": "gpu"}, node__tolerations=[]),
    ],
    "watcher": [{}, nested(watcher__enabled=False), nested(watcher__replicas=2)],
    "prices": [{}, nested(watcher__prices=[{"model": "A", "currency": "EUR", "per_hour": 1.5}])],
    "labels": [
        {},
        nested(watcher__namespaceLabels={"team": "t"}, watcher__nodeLabels={"zone": "z"}, resourceNames=["a/b"]),
    ],
    "accounts": [
        {},
        nested(rbac__create=False),
        nested(node__serviceAccount={"create": False, "name": "a"}, watcher__serviceAccount__annotations={"a": "b"}),
    ],
    "openshift": [{}, nested(openshift__scc__create=True)],
    "explain": [{}, nested(explainRole__create=True)],
    "priority": [
        {},
        nested(priorityClass__create=True),
        nested(node__priorityClassName="", watcher__priorityClassName=""),
    ],
    "tls": [
        {},
        nested(tls__enabled=True, tls__existingSecret="s", tls__ca__existingSecret="ca"),
        nested(tls__enabled=True, tls__certManager={"enabled": True, "issuerRef": {"name": "i"}}),
    ],
    "password": [
        {},
        nested(basicAuth__enabled=True, basicAuth__passwordHash=HASH, basicAuth__existingSecret="p"),
    ],
    "auth": [{}, nested(auth=AUTH)],
    "discovery": [
        {},
        nested(monitoring__discovery="serviceMonitor"),
        nested(monitoring__discovery="annotations"),
        nested(monitoring__discovery="none"),
    ],
    "monitoring": [
        {},
        nested(
            monitoring__labels={"release": "r"},
            monitoring__relabelings=[{"action": "labeldrop", "regex": "x"}],
            monitoring__metricRelabelings=[{"action": "labeldrop", "regex": "y"}],
        ),
    ],
    "service": [{}, nested(service__enabled=True, service__annotations={"a": "b"})],
    "rules": [{}, nested(rules__enabled=False), nested(rules__thresholds={"GPUPodIdle": 0.02}, clusterLabel="k8s")],
    "adapters": [
        {},
        nested(rules__adapters__dcgmExporter=True),
        nested(rules__adapters__kubeStateMetrics=True),
    ],
    "routes": [{}, nested(alertmanagerConfig__enabled=True)],
    "dashboards": [{}, nested(dashboards__enabled=False), nested(dashboards__grafanaOperator__enabled=True)],
    "report": [
        {},
        nested(report={**REPORT, "extraArgs": ["--by=team"]}, report__prometheus__ca__existingSecret="ca"),
        nested(report=REPORT, report__prometheus__credentials={"existingSecret": "p", "kind": "basicAuth"}),
    ],
    "policy": [{}, nested(networkPolicy__enabled=True), nested(networkPolicy__enabled=True, networkPolicy__from=PEERS)],
    "names": [
        {},
        nested(fullnameOverride="gpus", commonLabels={"a": "b"}, imagePullSecrets=[{"name": "r"}]),
        nested(image__registry="mirror.example", image__digest="sha256:" + "0" * 64, nameOverride="g"),
    ],
}
"""By topic; the first of each is the default."""
TOGETHER_IMPOSSIBLE = [
    ({"source": 1}, {"engine": 1}),
    ({"source": 1}, {"engine": 2}),
    *(({"restricted": 1}, {topic: 1}) for topic in ("dra", "processes", "audit", "state")),
    ({"restricted": 1}, {"engine": 2}),
    *(({"restricted": 1}, {"metadata": number}) for number in (1, 2)),
    *(({"attribution": 1}, {topic: 1}) for topic in ("dra", "processes", "audit")),
    *(({"attribution": 1}, {"metadata": number}) for number in (1, 2)),
    ({"claim": 1}, {"runtime": 1}),
    ({"auth": 1}, {"tls": 0}),
    ({"auth": 1}, {"password": 1}),
    *(({"adapters": 2}, {"watcher": number}) for number in (0, 2)),
]
"""Choices by number that the chart refuses together; the tests of values have the messages."""


def possible(row):
    return not any(
        first.items() <= row.items() and second.items() <= row.items() for first, second in TOGETHER_IMPOSSIBLE
    )


def pairs():
    """Every two choices that are possible together."""
    for first, second in combinations(CHOICES, 2):
        for one, other in product(range(len(CHOICES[first])), range(len(CHOICES[second]))):
            if possible(pair := {first: one, second: other}):
                yield frozenset(pair.items())


def _filled(row, missing):
    """The row with a choice for every topic, each the one that makes most of the missing pairs."""
    for topic in [each for each in CHOICES if each not in row]:
        candidates = [number for number in range(len(CHOICES[topic])) if possible({**row, topic: number})]
        made = [sum(frozenset({(topic, number), each}) in missing for each in row.items()) for number in candidates]
        row[topic] = candidates[made.index(max(made))]
    return row


def rows():
    """Rows of choices by topic that have all pairs; some two dozen of them."""
    missing = set(pairs())
    while missing:
        row = _filled(dict(min(missing, key=sorted)), missing)
        missing -= {frozenset(pair) for pair in combinations(row.items(), 2)}
        yield row


def values(row):
    return merged(*(CHOICES[topic][number] for topic, number in row.items()))
