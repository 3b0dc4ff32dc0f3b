"""What a nemesis can do to a broker, of whichever layer of the simulator it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from tidemark.partitions.raft.group import Group
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId


class Victim(Protocol):
    """A broker. What its layer does not have does nothing."""

    node_id: NodeId
    rng: Random
    step_seconds: float
    """How long each of its steps takes at most."""
    disk_factor: float
    """How many times slower than it was drawn its disk is."""

    def phase(self, key: PartitionKey) -> str:
        """Where one of its replicas is: one of `coverage.PHASES`."""

    def start(self) -> None: ...

    def stop(self, *, power: bool) -> None:
        """The process dies at once; without power, what was not synced may be lost."""

    def pause(self, seconds: float) -> None: ...

    def jump_clock(self, seconds: float) -> None:
        """The time of day."""

    def damage_journal(self) -> bool:
        """The process dies, and its journal loses what it said last. Whether it may, and has."""

    def rot_segment(self, key: PartitionKey) -> None:
        """A bit flips in what its log of the group has long held."""

    def fail_next_sync(self) -> None: ...

    def fill_disk(self, *, free_bytes: int) -> None: ...

    def free_disk(self) -> None: ...

    def run_low(self, *, is_out: bool) -> None:
        """Its disk is so full that it takes nothing for clients any more; or that is over."""

    def checkpoint(self) -> None: ...

    def compact(self, key: PartitionKey) -> None:
        """Its log of the group."""

    def tell(self, key: PartitionKey, event: Callable[[Group], None]) -> None:
        """What an operator wants of a group's core."""

    def observe(self, key: PartitionKey, parents: Sequence[NodeId]) -> None:
        """If it observes the group: pull from one of these, from the first if it can."""

    def move_leader(self, key: PartitionKey, to: NodeId, seconds: float) -> None:
        """What an operator wishes of the group's leader, within so many seconds."""
