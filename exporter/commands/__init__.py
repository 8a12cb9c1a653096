"""Command-line tools beside the two programs."""
