"""What an engine has: GPUs with their instances, links and other components, described as devices."""
