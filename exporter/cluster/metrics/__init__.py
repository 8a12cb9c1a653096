"""The watcher's metric families, one module per subject, made from one view of the cluster. No I/O."""
