"""The node exporter: one per GPU node; reads devices, attributes them to pods, serves the page."""
