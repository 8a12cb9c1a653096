"""The programs that run in a cluster: node exporter, cluster watcher, and the command-line tools."""

VERSION = "0.1.0"
"""That of the distribution. Asking the installed metadata would load an e-mail parser, for half a megabyte."""
