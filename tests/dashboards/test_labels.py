"""Every label that a dashboard names is one that something sets: in variables, columns, legends and links.

With `tests/test_contract.py`, which checks what queries select and group by, this is why a label cannot be renamed in
the exporter alone.
"""

import re
from pathlib import Path

import pytest

from tests.dashboards.rendered import EVERY_DASHBOARD, RENDERED, filled, panels, text, variable_sources
from tests.promql import selectors
from tests.test_contract import ADDED, ALERT, EXPOSED, FOREIGN, RECORDED, TARGET

KNOWN = ALERT | TARGET | ADDED | {"link_cluster"}.union(*EXPOSED.values(), *FOREIGN.values())

VARIABLES = {
    "gpu-fleet": ["cluster"],
    "gpu-node": ["cluster", "node", "gpu"],
    "gpu-workload": ["cluster", "namespace", "workload", "pod", "node"],
    "gpu-namespace": ["cluster", "namespace"],
    "gpu-capacity": ["cluster", "resource", "model"],
    "gpu-efficiency": ["cluster", "namespace"],
    "gpu-health": ["cluster", "node"],
    "gpu-device": ["cluster", "node", "uuid"],
    "gpu-mig-sharing": ["cluster", "node"],
    "gpu-exporter": ["cluster", "node"],
    "gpu-alerts": ["cluster", "severity", "area"],
    "gpu-weekly": ["cluster"],
}
"""By uid, without the data source. They are an interface: links of alerts and of others set them."""


@pytest.mark.parametrize("uid", VARIABLES)
def test_the_variables_are_those_that_links_from_elsewhere_set(uid):
    names = [each["name"] for each in RENDERED[uid]["templating"]["list"]]
    assert names == ["datasource", *VARIABLES[uid]]


def test_the_document_names_the_variables_of_each_dashboard():
    rows = re.findall(r"^\| `(gpu-[a-z-]+)` \|.*\|(.*)\|$", Path("docs/grafana.md").read_text(), re.MULTILINE)
    documented = {uid: re.findall(r"`(\w+)`", names) for uid, names in rows}
    assert documented.keys() == VARIABLES.keys() == RENDERED.keys()
    for uid, names in documented.items():
        chosen = [each for each in RENDERED[uid]["templating"]["list"] if not each.get("hide")]
        assert [each["name"] for each in chosen] == ["datasource", "cluster", *names]


@EVERY_DASHBOARD
def test_variables_list_values_of_labels_that_their_series_have(dashboard):
    for variable, series, label in variable_sources(dashboard):
        for name, _ in selectors(filled(series)):
            assert name in RECORDED | EXPOSED.keys() | FOREIGN.keys(), variable
            assert label in KNOWN, variable
            assert name not in EXPOSED or label in EXPOSED[name] | TARGET, variable


@EVERY_DASHBOARD
def test_columns_legends_and_links_name_labels_that_something_sets(dashboard):
    for panel in panels(dashboard):
        named = set(re.findall(r"__field\.labels\.(\w+)", text(panel)))
        for target in panel["targets"]:
            named |= set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
        for step in panel.get("transformations", ()):
            fields = step["options"].get("include", {}).get("names", ())
            named |= {field for field in fields if not field.startswith("Value")}
        assert named <= KNOWN, panel["title"]
