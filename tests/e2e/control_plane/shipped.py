"""The manifests as they are shipped, applied to a control plane."""

from pathlib import Path

import yaml

DEPLOY = Path(__file__).parents[3] / "deploy"
OF_THE_OPERATOR = {"PodMonitor", "PrometheusRule"}


def documents(*names):
    """The objects of these files below `deploy`."""
    return [each for name in names for each in yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8"))]


def rights():
    """The namespace, the accounts, and everything that gives them rights."""
    return documents("manifests/namespace.yaml", "manifests/rbac.yaml", "manifests/cluster-role.yaml")


def rights_of_two_replicas():
    return documents("two-replicas/role.yaml", "two-replicas/rbac.yaml")


def apply_rights(plane):
    for each in rights():
        plane.apply(each)
