"""What generated rules and dashboards have in common."""
