"""The rules as they are written down: one test each, named by the section it comes from.

`test_raft.py` follows Ongaro and Ousterhout's paper (extended version) and Ongaro's dissertation,
`test_design.py` what this project changes in them (`docs/decisions/0005-replication-groups.md`).
They look at one replica and what it says; what comes of that among several is in `tests/scenarios`.
"""
