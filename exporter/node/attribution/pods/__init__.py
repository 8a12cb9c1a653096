"""What pods and ResourceClaims, as the API server knows them, add to the kubelet's list."""
