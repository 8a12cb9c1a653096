"""Simulated counterparts for tests and the demo: an API server, a kubelet and their objects. Not in the wheel."""
