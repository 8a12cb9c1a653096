"""Table columns that several dashboards have, with their links."""

from dashboards.links import row_link
from dashboards.style import Column, Unit

CLUSTER_COLUMN = Column("cluster", "Cluster", width=110)
NODE_COLUMN = Column("node", "Node", link=row_link("gpu-node", node="Node"))
NAMESPACE_COLUMN = Column("namespace", "Namespace", link=row_link("gpu-namespace", namespace="Namespace"))
WORKLOAD_COLUMN = Column(
    "workload", "Workload", link=row_link("gpu-workload", namespace="Namespace", workload="Workload")
)
POD_COLUMN = Column("pod", "Pod", link=row_link("gpu-workload", namespace="Namespace", pod="Pod"))
"""A table that has one of the last two needs the column Namespace too: their links set it."""
TYPE_COLUMN = Column("workload_type", "Type", width=120)
MODEL_COLUMN = Column("model", "Model")
RESOURCE_COLUMN = Column("resource", "Resource")


def count(field: str, title: str, width: int = 90, link: str = "") -> Column:
    """A column of numbers without a unit."""
    return Column(field, title, Unit.COUNT, width=width, link=link)


def share(field: str, title: str) -> Column:
    """A column of shares as bars from 0 to 1."""
    return Column(field, title, Unit.RATIO, bar=True)
