"""The library itself: its start, calls that may hang, what its statuses and values mean, and why it cannot be read."""
