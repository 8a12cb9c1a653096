"""The exposition: from metric families to the text that `/metrics` returns, in both Prometheus formats."""
