"""Prices of GPUs, which an operator states in a file: its rows, which of them are valid, and when the file is read."""
