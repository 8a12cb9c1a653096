"""The API server as a pod reaches it: one request for a ConfigMap, and reflectors, which list and watch."""
