"""Compaction: of the records with one key a log keeps the last.

`job` says what is to be done, `survey`, `keys` and `rewriting` do it, file by file and with bounded
memory; `swapping` puts the new files in the old ones' place. None of it is on the way of an append.
See `docs/decisions/0009-compaction.md`.
"""
