"""`gpugauge explain`: why GPU pods are pending, from a cluster or from files of `kubectl get -o json`."""
