"""Real faults: broker processes, a workload of librdkafka's, and what goes wrong in the world.

`make chaos` (or `python -m tests.chaos`) starts three brokers, each in a network namespace of its
own with a disk of its own, does to them what machines do, and has the history of all that clients
sent and saw judged by the checkers that judge the simulator's. Where root is missing, the brokers
share this machine's network and file system, and the faults that need more are left out; the
report says which.
"""
