"""The `nvml` source: device readings from NVML through `pynvml`, with GPM for engine activity on Hopper and newer."""
