"""Replicas that move: what a broker does about those of the groups it leads."""
