"""Links from a panel to another of our dashboards, with the time range, the data source and the clusters.

Variables of the other dashboard are set by name: `node="Node"` sets its variable `node`.
"""

from dashboards.layout import panel_id

CLUSTER_OF_LINKS = "link_cluster"
"""The field of a table that links set `cluster` to: the cluster of the row, or the choice All without such a label."""


def row_link(uid: str, **columns: str) -> str:
    """A link from a row of a table: `node="Node"` sets `node` to the value of the column headed `Node`.

    The cluster is that of the row, because two clusters can have nodes or namespaces of the same name.
    """
    picked = _settings({"cluster": CLUSTER_OF_LINKS, **columns}, '${{__data.fields["{}"]}}')
    return f"/d/{uid}?${{datasource:queryparam}}{picked}&${{__url_time_range}}"


def panel_link(uid: str, *kept: str, panel: str = "", **labels: str) -> str:
    """A link from a number, a bar or a line: `node="node"` sets `node` to the label `node` of the series.

    The chosen clusters are kept, and so are the chosen values of the variables `kept`, which both dashboards have.
    With the title of a panel of the other dashboard, such as a list, that panel alone is shown.
    """
    shown = f"&viewPanel={panel_id(panel)}" if panel else ""
    chosen = "".join(f"&${{{name}:queryparam}}" for name in ("cluster", *kept))
    picked = _settings(labels, "${{__field.labels.{}}}")
    return f"/d/{uid}?${{datasource:queryparam}}{chosen}{picked}{shown}&${{__url_time_range}}"


def _settings(names: dict[str, str], form: str) -> str:
    return "".join(f"&var-{variable}={form.format(name)}" for variable, name in names.items())
