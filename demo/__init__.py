"""The demo: the whole product on one machine, in `python -m demo`; not part of the wheel.

Simulated GPU nodes and a simulated Kubernetes cluster, with real exporters, Prometheus and Alertmanager.
"""
