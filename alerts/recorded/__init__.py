"""Groups that record aggregates and thresholds, which alerts and dashboards read."""
