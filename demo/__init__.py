"""The whole product on one machine, not part of the wheel.

Simulated nodes and a simulated cluster, with real exporters, Prometheus and Alertmanager.
"""
