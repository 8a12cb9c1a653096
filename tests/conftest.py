"""Fixtures and options shared by every test."""

from hypothesis import settings

# A machine that is busy with something else makes an example slow, not wrong.
settings.register_profile("gpugauge", deadline=None)
settings.load_profile("gpugauge")
