"""Topics and their configs: found, made, changed and deleted."""
