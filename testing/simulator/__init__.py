"""Whole clusters in one thread, under a clock that is ours, from one seed.

The brokers' parts that decide anything are the real ones: `ReplicationNode`, the journal, the logs,
`state.db`. What is played is the world around them: time, the network, disks that tear and lose
what was not synced, processes that die and stall, and clients. Every choice of that world is drawn
from the seed, so a run that failed is run again, exactly, by its seed.
"""
