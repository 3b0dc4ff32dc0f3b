"""A group's replica on its disk, and all replicas of one broker: what a cluster does, without I/O
of its own but storage's. The broker drives this with trio; the simulator drives the very same.
"""
