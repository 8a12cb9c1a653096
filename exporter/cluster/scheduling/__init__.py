"""Finds out why a GPU pod is pending: from the scheduler's message, the nodes it could use, and their free GPUs.

No I/O, no state.
"""
