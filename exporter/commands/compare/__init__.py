"""`gpugauge compare`: what changes for those who read one exporter's metrics and will read another's."""
