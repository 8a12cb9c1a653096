"""Which of several watchers exposes the cluster's metrics: the one that has the lease."""
