"""Device readings from DCGM through a thin layer of our own over libdcgm."""
