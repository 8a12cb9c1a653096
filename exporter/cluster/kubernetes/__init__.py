"""Objects of the API server: listed, watched, decoded to the few fields needed, and stored as records."""
