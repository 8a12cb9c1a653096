"""The one client of the commands for Prometheus's HTTP API v1, which Mimir, Thanos and others serve too."""
