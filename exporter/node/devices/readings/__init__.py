"""What a read returns, the same from every source: devices, samples, and what could not be read."""
