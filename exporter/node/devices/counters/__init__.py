"""The counters file: which fields are exposed, and how often they are sampled."""
