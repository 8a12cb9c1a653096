"""What is computed from samples: counts of events, states of devices, values in base units."""
