"""What nodes have for pods, and which of them a pod could use."""
