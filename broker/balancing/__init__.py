"""Balancing leaders, draining brokers and letting them go, on the broker that leads the metadata.

What is decided is `partitions/balancing/`; here is what it is told, and what becomes of it.
"""
