"""What a partition's records add up to: pure machines, each a function of what was fed to it.

No clock, no random numbers, no files: times and ids are arguments, so that replaying the same log
gives the same state on every node.
"""
