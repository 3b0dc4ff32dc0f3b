"""For every test."""

from hypothesis import settings

# A deadline per example measures how busy the machine is. Slow tests end by pytest's own time-out.
settings.register_profile("tidemark", deadline=None)
settings.load_profile("tidemark")
