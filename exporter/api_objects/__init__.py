"""What both programs read of the API server's objects: their metadata, lists and watches, and a pod's workload."""
