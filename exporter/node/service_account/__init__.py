"""The API server and the kubelet as a pod reaches them: one request, reflectors (list and watch), pollers (list)."""
