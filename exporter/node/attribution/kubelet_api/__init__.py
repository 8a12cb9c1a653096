"""Stubs of the kubelet's PodResources API, made from podresources.proto by scripts/generate_stubs.sh."""
