"""The state file: what the node exporter remembers across its restarts."""
