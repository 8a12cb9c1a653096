"""The programs that run in a cluster: node exporter, cluster watcher, and the command-line tools."""
