"""The coordinator of consumer groups: pure groups, driven by requests, the log and the clock."""
