"""Scripted scenarios: a few replicas, a pool of messages, and a schedule by hand.

Each classic bug of replicated logs is one test, named after it. `Cluster` is the stage; after every
step it checks what must always hold (`invariants.py`).
"""
