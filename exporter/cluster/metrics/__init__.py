"""The watcher's metric families, one module per subject. Pure functions of one view of the cluster."""
