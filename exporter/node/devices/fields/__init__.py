"""The fields: their names and ranges, what to read of which device, and which values are valid."""
