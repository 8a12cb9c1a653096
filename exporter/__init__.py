"""The command `gpugauge` with its two programs, which serve metrics for Prometheus.

`node` (one per node with GPUs) exposes the activity of its GPUs and the pods that they are allocated to; `cluster` (one
per cluster) exposes pending GPU pods and free GPUs, from the objects of the API server.
"""

VERSION = "0.1.0"
"""The version of the distribution. importlib.metadata is not asked: it loads an e-mail parser, half a megabyte."""
