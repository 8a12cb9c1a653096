"""The `nvml` source: device readings from NVML, the driver's own library, through `pynvml`.

Values have DCGM's field ids and units. GPM (GPU Performance Monitoring, a part of NVML) gives engine activity on Hopper
and newer.
"""
