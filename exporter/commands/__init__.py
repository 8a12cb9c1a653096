"""Commands of `gpugauge` beside the two programs."""
