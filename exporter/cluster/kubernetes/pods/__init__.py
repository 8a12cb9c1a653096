"""What a pod requests, what holds it back, and how it ended."""
