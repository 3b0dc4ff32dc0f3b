"""The pytest plugin of `tidemark`; pytest loads it by its entry point."""
