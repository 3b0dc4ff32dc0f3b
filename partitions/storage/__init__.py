"""A partition's log on disk, and whatever else of a broker has to survive its end.

Synchronous, and with one seam to the operating system (`files`). `log.Log` is one partition's log,
`journal/` the write-ahead journal of all partitions, `state_db` what is small and must be exact,
`compaction/` what writes closed segments anew, and `inspect` looks at files without a broker.
"""
