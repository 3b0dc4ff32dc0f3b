"""Who waits for an answer, as the coordinator sees it: something to hand back with the answer."""

from typing import TypeAlias

Token: TypeAlias = object
"""Compared by identity, never looked into."""
