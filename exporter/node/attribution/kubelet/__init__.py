"""The kubelet as a source: its calls, what its answers mean, and why it could not be read."""
