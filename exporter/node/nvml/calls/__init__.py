"""Which call of NVML gives which field, and how its value becomes that of DCGM."""
