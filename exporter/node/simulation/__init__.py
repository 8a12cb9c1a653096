"""The `simulated` source: GPUs and their allocations from a scenario, for demos and tests on machines without a GPU."""
