"""The node exporter: one per GPU node; reads its devices, attributes them to pods and serves `/metrics`."""
