"""Links between dashboards: they lead to something that exists, with variables that it has, in the right cluster."""

import re

import pytest

from dashboards.links import CLUSTER_OF_LINKS, panel_link, row_link
from tests.dashboards.rendered import EVERY_DASHBOARD, RENDERED, all_panels, expressions, links, panels, text

ADDRESS = re.compile(r"/d/(?P<uid>[a-z0-9-]+)\?\$\{datasource:queryparam\}&(?P<rest>.*)\$\{__url_time_range\}")


def test_a_link_of_a_row_sets_the_cluster_of_the_row():
    assert row_link("gpu-node", node="Node") == (
        '/d/gpu-node?${datasource:queryparam}&var-cluster=${__data.fields["link_cluster"]}'
        '&var-node=${__data.fields["Node"]}&${__url_time_range}'
    )


def test_a_link_of_a_panel_keeps_the_chosen_clusters_and_sets_labels_of_the_series():
    assert panel_link("gpu-node", "model", node="node") == (
        "/d/gpu-node?${datasource:queryparam}&${cluster:queryparam}&${model:queryparam}"
        "&var-node=${__field.labels.node}&${__url_time_range}"
    )


@EVERY_DASHBOARD
def test_links_lead_to_existing_dashboards_and_set_variables_that_they_have(dashboard):
    own = {each["name"] for each in dashboard["templating"]["list"]}
    for link in links(dashboard):
        found = ADDRESS.fullmatch(link)
        assert found, link
        assert found["uid"] in RENDERED, link
        declared = {each["name"] for each in RENDERED[found["uid"]]["templating"]["list"]}
        assert set(re.findall(r"var-(\w+)=", found["rest"])) <= declared, link
        assert set(re.findall(r"\$\{(\w+):queryparam\}", found["rest"])) <= own & declared, link


@EVERY_DASHBOARD
def test_a_link_to_a_panel_leads_to_one_that_exists(dashboard):
    for link in links(dashboard):
        uid = link.split("?")[0].removeprefix("/d/")
        ids = {str(panel["id"]) for panel in all_panels(RENDERED[uid])}
        assert set(re.findall(r"viewPanel=(\d+)", link)) <= ids, link


@EVERY_DASHBOARD
def test_links_of_rows_name_columns_that_the_table_has(dashboard):
    for panel in panels(dashboard):
        headings = {each["matcher"]["options"] for each in panel["fieldConfig"]["overrides"]}
        named = set(re.findall(r'__data\.fields\[\\?"([^"\\]+)', text(panel)))
        assert named <= headings, panel["title"]
        if named:
            assert CLUSTER_OF_LINKS in named, panel["title"]
            assert all(CLUSTER_OF_LINKS in target["expr"] for target in panel["targets"])


@EVERY_DASHBOARD
def test_the_labels_that_links_and_legends_name_are_in_the_queries(dashboard):
    for panel in panels(dashboard):
        queries = " ".join(target["expr"] for target in panel["targets"])
        named = set(re.findall(r"__field\.labels\.(\w+)", text(panel)))
        for target in panel["targets"]:
            named |= set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
        assert {label for label in named if not re.search(rf"\b{label}\b", queries)} == set(), panel["title"]


@EVERY_DASHBOARD
def test_no_address_of_another_site_is_used(dashboard):
    assert "http://" not in text(dashboard)
    assert "https://" not in text(dashboard)
    assert list(expressions(dashboard))


@pytest.mark.parametrize("uid", ["gpu-fleet", "gpu-capacity", "gpu-efficiency"])
def test_every_number_of_a_fleet_opens_a_list(uid):
    numbers = [panel for panel in panels(RENDERED[uid]) if panel["type"] == "stat"]
    assert len(numbers) > 5
    assert [panel["title"] for panel in numbers if not panel["fieldConfig"]["defaults"]["links"]] == []


def test_utilization_per_node_per_pod_and_per_mig_device_is_one_click_from_the_start_page():
    opened = {link.split("?")[0].removeprefix("/d/") for link in links(RENDERED["gpu-fleet"])}
    assert {"gpu-node", "gpu-workload", "gpu-capacity", "gpu-namespace"} <= opened
    for uid, title in (("gpu-node", "GPUs and MIG devices"), ("gpu-workload", "GPUs of the pods")):
        (panel,) = [each for each in panels(RENDERED[uid]) if each["title"] == title]
        kept = [step["options"].get("include", {}).get("names", []) for step in panel["transformations"]]
        assert {"GPU_I_ID", "GPU_I_PROFILE"} <= {field for fields in kept for field in fields}
        for series in ("busy_ratio", "tensor_active_ratio", "memory_used_bytes"):
            assert f"gpugauge_device_{series}" in text(RENDERED[uid])
