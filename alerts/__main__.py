"""Generates gpugauge's rule files, the same rules as a PrometheusRule, and an example Alertmanager configuration.

`python -m alerts [--output FOLDER] [--runbook ADDRESS] [--grafana ADDRESS] [--cluster-label NAME]`; rule files in the
folder that belong to no group are removed.
"""

import argparse
from pathlib import Path

from alerts import ADAPTERS, COMMON, GROUPS
from alerts.routing import configuration, resource
from alerts.routing.message_templates import TEMPLATES
from alerts.rules.rule import LINKS, RUNBOOK, Group, Links
from alerts.rules.rulefile import mimir_rules, prometheus_rule, rule_file
from promql.cluster_label import CLUSTER_LABEL, TOKEN, with_cluster_label


def files(links: Links = LINKS, cluster_label: str = CLUSTER_LABEL) -> dict[str, str]:
    """Return the text of every generated file, by its path below the output folder.

    `links` are the addresses that the alerts link to, `cluster_label` the label that tells clusters apart.
    """
    rules = {_file(group): rule_file(group, links) for group in GROUPS}
    resources = {
        "prometheusrule.yaml": prometheus_rule(COMMON, links),
        "mimir.yaml": mimir_rules(COMMON, links),
        **{
            f"prometheusrule-{group.name.removeprefix('gpugauge-')}.yaml": prometheus_rule((group,), links, group.name)
            for group in ADAPTERS
        },
    }
    renamed = {name: with_cluster_label(text, cluster_label) for name, text in {**rules, **resources}.items()}
    return {**renamed, **routing(), "cluster-label.txt": f"{TOKEN.pattern}\n"}


def _file(group: Group) -> str:
    """Adapters have a folder of their own, so that `rules/*.yaml` are the rules that everybody loads."""
    return f"rules/{'adapters/' if group in ADAPTERS else ''}{group.name.removeprefix('gpugauge-')}.yaml"


def routing() -> dict[str, str]:
    """Return the text of the files for Alertmanager, by their path below the output folder."""
    return {
        "alertmanager/example.yaml": configuration.example(),
        "alertmanager/quiet.yaml": configuration.quiet(),
        "alertmanager/fragment.yaml": configuration.fragment(),
        "alertmanager/gpugauge.tmpl": TEMPLATES,
        "alertmanager/alertmanagerconfig.yaml": resource.alertmanager_config(),
    }


def main(arguments: list[str] | None = None) -> None:
    """Write every file below `--output`, and remove rule files there that belong to no group."""
    parser = argparse.ArgumentParser(prog="python -m alerts", description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("deploy/generated"), help="folder to write below")
    parser.add_argument("--runbook", default=RUNBOOK, help="address of the runbook that alerts link to")
    parser.add_argument("--grafana", default="", help="address of Grafana, before the paths of dashboards")
    parser.add_argument("--cluster-label", default=CLUSTER_LABEL, help="label that tells clusters apart, in the rules")
    options = parser.parse_args(arguments)
    wanted = files(Links(options.runbook, options.grafana.rstrip("/")), options.cluster_label)
    for name, text in wanted.items():
        path = options.output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for stale in (options.output / "rules").rglob("*.yaml"):
        if str(stale.relative_to(options.output)) not in wanted:
            stale.unlink()


if __name__ == "__main__":
    main()
