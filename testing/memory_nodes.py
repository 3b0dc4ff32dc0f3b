"""Files and directories of a disk in memory: as they are seen, and what a crash leaves of them.

What was synced is there. Of the rest it is anything: nothing, all, the first few changes, some out
of order, torn anywhere. Where a write was lost, there is what was there before, or zeros where the
file has grown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Final, TypeVar

_SECTOR_BYTES: Final = 512
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Write:
    position: int
    data: bytes

    @property
    def end(self) -> int:
        return self.position + len(self.data)

    def apply(self, content: bytearray) -> None:
        if len(content) < self.position:
            content.extend(bytes(self.position - len(content)))
        content[self.position : self.end] = self.data


@dataclass(frozen=True, slots=True)
class Truncate:
    size_bytes: int

    def apply(self, content: bytearray) -> None:
        del content[self.size_bytes :]
        content.extend(bytes(self.size_bytes - len(content)))


_Change = Write | Truncate


@dataclass(slots=True, eq=False)
class Inode:
    """A file's content: as it is seen, as it was synced, and the changes in between."""

    content: bytearray = field(default_factory=bytearray)
    synced: bytearray = field(default_factory=bytearray)
    unsynced: list[_Change] = field(default_factory=list)
    modified_ms: int = 0
    opened: int = 0
    """How many have it open."""

    def change(self, change: _Change) -> None:
        change.apply(self.content)
        self.unsynced.append(change)

    def sync(self) -> None:
        # Not simply what is seen: changes that a failed sync dropped are not written by the next.
        for change in self.unsynced:
            change.apply(self.synced)
        self.unsynced.clear()

    def sync_written(self) -> None:
        """What was written last, and all that it was written over; not what else was, unless the
        file was cut meanwhile."""
        last, kept = self.unsynced[-1], list[_Change]()
        if any(isinstance(change, Truncate) for change in self.unsynced):
            self.sync()
            return
        for change in self.unsynced:
            if _overlap(change, last):
                change.apply(self.synced)
            else:
                kept.append(change)
        self.unsynced = kept

    def crash(self, rng: Random) -> None:
        for change in _survivors(rng, self.unsynced):
            for part in _torn(rng, change):
                part.apply(self.synced)
        self.unsynced.clear()
        self.content = bytearray(self.synced)

    def copy(self, known: "dict[Node, Node]") -> "Inode":
        # By hand: `deepcopy` takes a hundred times as long, and a simulated broker dies often.
        copied = known.get(self)
        if copied is None:
            content, synced = bytearray(self.content), bytearray(self.synced)
            copied = known[self] = Inode(content, synced, list(self.unsynced), self.modified_ms)
        assert isinstance(copied, Inode)
        return copied


@dataclass(frozen=True, slots=True)
class NameChange:
    """`new` is given to a node, or `old` taken from one; a rename is both, and atomic."""

    old: str | None
    new: str | None
    node: "Node"

    def apply(self, names: "dict[str, Node]") -> None:
        if self.old is not None:
            names.pop(self.old, None)
        if self.new is not None:
            names[self.new] = self.node


@dataclass(slots=True, eq=False)
class Directory:
    names: "dict[str, Node]" = field(default_factory=dict)
    synced: "dict[str, Node]" = field(default_factory=dict)
    unsynced: list[NameChange] = field(default_factory=list)

    def change(self, change: NameChange) -> None:
        change.apply(self.names)
        self.unsynced.append(change)

    def sync(self) -> None:
        for change in self.unsynced:
            change.apply(self.synced)
        self.unsynced.clear()

    def crash(self, rng: Random) -> None:
        for change in _survivors(rng, self.unsynced):
            change.apply(self.synced)
        self.unsynced.clear()
        self.names = dict(self.synced)
        for name in sorted(self.names):
            self.names[name].crash(rng)

    def copy(self, known: "dict[Node, Node]") -> "Directory":
        """`known`: what of the same tree was copied already, by what it is a copy of."""
        copied = known.get(self)
        if copied is None:
            copied = known[self] = Directory()
            copied.names = {name: node.copy(known) for name, node in self.names.items()}
            copied.synced = {name: node.copy(known) for name, node in self.synced.items()}
            copied.unsynced = [
                NameChange(change.old, change.new, change.node.copy(known))
                for change in self.unsynced
            ]
        assert isinstance(copied, Directory)
        return copied


Node = Inode | Directory


def _survivors(rng: Random, changes: Sequence[_T]) -> Sequence[_T]:
    """What of a number of unsynced changes has reached the disk."""
    match rng.randrange(4):
        case 0:
            return ()
        case 1:
            return changes
        case 2:
            return changes[: rng.randint(0, len(changes))]
        case _:
            return [change for change in changes if rng.random() < 0.5]


def _overlap(one: _Change, other: _Change) -> bool:
    assert isinstance(one, Write)
    assert isinstance(other, Write)
    return one.position < other.end and other.position < one.end


def _torn(rng: Random, change: _Change) -> Sequence[_Change]:
    """The change, or what became of it: half of a write, some sectors, or its length alone."""
    if isinstance(change, Truncate) or rng.random() < 0.5:
        return [change]
    position, data = change.position, change.data
    grown = Write(position + len(data), b"")
    match rng.randrange(3):
        case 0:
            return [Write(position, data[: rng.randint(0, len(data))])]
        case 1:
            return [grown]
        case _:
            first = -position % _SECTOR_BYTES
            cuts = [0, *range(first or _SECTOR_BYTES, len(data), _SECTOR_BYTES), len(data)]
            sectors = [Write(position + at, data[at:end]) for at, end in pairwise(cuts)]
            return [grown, *(sector for sector in sectors if rng.random() < 0.5)]


def used_bytes(node: Node) -> int:
    """Of the file, or of all files below."""
    if isinstance(node, Inode):
        return len(node.content)
    return sum(map(used_bytes, node.names.values()))
