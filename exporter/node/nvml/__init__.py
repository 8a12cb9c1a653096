"""The second source of device readings: NVML through `pynvml`, with GPM for engine activity on Hopper and newer."""
