"""Reads the GPUs in each collection, and remembers what they are."""
