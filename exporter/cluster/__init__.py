"""The cluster watcher: one per cluster; exposes which GPU pods are pending and why."""
