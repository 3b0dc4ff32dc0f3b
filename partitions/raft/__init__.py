"""Consensus of one replication group, after Raft: events in, values out.

No I/O, no clock, no random numbers, no threads. Entries have positions `(epoch, end offset)` in
place of Raft's `(term, index)`; see `docs/decisions/0005-replication-groups.md`.
"""
