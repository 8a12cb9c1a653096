"""The calls of libdcgm: its C interface, loading it, a connection, and the values that it returns."""
