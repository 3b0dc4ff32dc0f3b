"""Real faults: broker processes, librdkafka's clients, and what goes wrong in the world.

`make chaos` (or `python -m tests.chaos`) starts three brokers, does to them what machines do, and
has the history of all that clients sent and saw judged by the checkers that judge the simulator's.
With root each broker is in a network namespace of its own with a disk of its own. Without, proxies
stand between them, and the faults that need a file system of their own are left out; the report
says which.
"""
