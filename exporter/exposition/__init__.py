"""The exposition: from metric families to the text that `/metrics` answers, in both Prometheus formats."""
