"""What the kubelet offers to pods: GPUs that it does not offer, and ids that match no device."""
