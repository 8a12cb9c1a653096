"""Why pods are pending: from the scheduler's message, and from what nodes have."""
