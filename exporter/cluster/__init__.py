"""The cluster watcher: one per cluster; says which GPU pods are pending and why."""
