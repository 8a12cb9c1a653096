"""The audit log: which container was given which device, from when to when, as lines that are chained by hashes."""
