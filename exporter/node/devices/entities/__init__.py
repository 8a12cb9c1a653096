"""What can be read: GPUs and MIG devices, links, vGPUs and other components, and which of them are selected."""
