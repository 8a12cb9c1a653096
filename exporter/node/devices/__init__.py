"""Devices and their samples: devices, fields and readings as types, what is read of which device, and their series."""
