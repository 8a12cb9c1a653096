"""Processes on GPUs: which pod each belongs to, and what the pods use of a shared device."""
