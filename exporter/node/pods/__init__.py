"""Pod metadata: what the pods of this node are, as Kubernetes' API describes them."""
