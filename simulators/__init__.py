"""Simulated API server and kubelet, and the Kubernetes objects they serve, for tests and the demo. Not in the wheel."""
