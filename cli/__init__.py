"""The `tidemark` command: one module per noun."""
