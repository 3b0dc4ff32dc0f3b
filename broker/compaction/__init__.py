"""Compaction on a broker: which log is due, a process to do it in, and what operators see of it."""
