"""Partitions on this broker: their logs, what is committed, and who waits for it."""
