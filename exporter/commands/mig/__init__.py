"""`gpugauge mig check`: which MIG geometries fit a GPU, and whether those of a configuration do."""
