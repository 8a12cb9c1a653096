"""What the labels of nodes and namespaces state."""
