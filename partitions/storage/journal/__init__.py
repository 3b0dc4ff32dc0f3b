"""One write-ahead journal for all partitions of a data directory.

What must be durable before somebody is told of it is written here first, in the order in which
it happened, and synced once for all that was waiting. `state.db` and the segments hold the same,
later; after a crash `redo` brings them up to the journal before anything is opened. See
`docs/decisions/0005-replication-groups.md`.
"""
