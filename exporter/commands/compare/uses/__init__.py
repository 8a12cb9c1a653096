"""`gpugauge compare --uses`: which rules, dashboards and autoscalers would lose data after a switch, and what to do."""
