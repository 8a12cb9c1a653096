"""The whole product on one machine: simulated nodes and cluster, real exporters, Prometheus and Alertmanager."""
