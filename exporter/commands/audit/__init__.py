"""`gpugauge audit`: what audit logs say: who had which device when, GPU-hours, gaps, and whether the lines fit."""
