"""What a GPU has, read through NVML: MIG devices, links, vGPUs, other GPUs beside it, and processes."""
