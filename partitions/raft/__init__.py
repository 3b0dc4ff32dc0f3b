"""Consensus of one replication group, after Raft: events in, values out.

No I/O, no clock, no random numbers, no threads. Entries have positions `(epoch, end offset)` in
place of Raft's `(term, index)`; see `docs/decisions/0005-replication-groups.md`.

`group.Group` takes the events, `ready.Ready` says what has come of them. To read it: what a log
consists of (`entries`), its shape (`epochs`), what survives a change of role (`replica`), then the
roles, each in a module of its name, and `voting`. `doubt` and `returning` argue why replicas that
have lost something, or come back, do no harm; `steady` is the short way for what is frequent.
"""
