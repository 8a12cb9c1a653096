"""`gpugauge report`: GPU-hours allocated, used and wasted over days, what they cost, and what would be enough."""
