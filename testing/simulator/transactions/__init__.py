"""Transactions and groups under the simulator: real coordinators, verification, and markers.

What the broker's classes need of threads, sockets and trio is replaced here (`stand_ins`,
`coordinators`); coordinators, their logs, replicas and what is decided about requests are theirs.
"""
