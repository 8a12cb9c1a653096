"""The `dcgm` source: device readings from DCGM, through a thin ctypes layer of our own over libdcgm.

Comments in this package name the DCGM version that a fact is of, and how it is known. "Header": `dcgm_structs.h`,
`dcgm_agent.h`, `dcgm_fields.h` and `dcgmvalue.h`, compared for 3.1.8, 3.3.9, 4.0.0, 4.2.3, 4.4.2, 4.5.3 and 4.6.0.
"Source": read in DCGM's published source code, not run. "Measured": seen on libdcgm and nv-hostengine 4.6.0 over
NVIDIA's own NVML injection library, that is, with simulated GPUs. "Reported": in public issues, not verified.
"""
