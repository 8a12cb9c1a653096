"""Health checks of the GPUs, by the engine through NVIDIA's Python bindings."""
