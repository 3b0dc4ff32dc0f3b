"""What became of the wish to have a group led by another broker."""

from __future__ import annotations

from enum import StrEnum

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass


class Ending(StrEnum):
    """What became of a move, as the leader that was to go knows it."""

    DONE = "done"
    FAILED = "failed"
    LEFT = "left"
    """The lead went elsewhere meanwhile: whoever has it sees to the wish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedMove:
    """One move, when it is over."""

    key: PartitionKey
    target: NodeId
    ending: Ending
    why: str
    """A sentence, empty if all went well."""
    attempts: int
    """How often writes were held."""
    catch_up_seconds: float
    """From its beginning until they were held for the last time, or to its end if never."""
    paused_seconds: float
    """For how long in all."""
