"""The workloads: a base point, each axis varied around it, and a few corners with names.

Not the full product, which would be thousands: an axis shows how a cost grows, a corner what people
ask about by name. `QUICK` are those that a run of a minute has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Final, Literal

Kind = Literal["produce", "tail", "catch-up", "mixed"]
Flush = Literal["os", "commit"]
Codec = Literal["none", "zstd"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is asked of the brokers. `group` is what it is drawn and listed with."""

    name: str
    group: str
    kind: Kind = "produce"
    record_bytes: int = 1_000
    batch_bytes: int = 16_384
    partitions: int = 1
    connections: int = 1
    """Of producers."""
    in_flight: int = 5
    """On each connection."""
    acks: int = -1
    replicas: int = 1
    flush: Flush = "os"
    compression: Codec = "none"
    consumers: int = 0
    """Each has a connection of its own and reads all there is."""
    fetch_bytes: int = 1 << 20
    share: float = 1.0
    """Of the closed loop's rate that is produced; less than 1 leaves room for readers."""

    def __post_init__(self) -> None:
        if (self.kind == "produce") != (self.consumers == 0):
            raise ValueError(f"{self.name}: a workload has consumers, or produces only")
        if self.kind == "mixed" and self.consumers < 2:
            raise ValueError(f"{self.name}: one reads the tail, one catches up")

    @property
    def settings(self) -> dict[str, object]:
        return asdict(self)


BASE: Final = Workload(name="base", group="base")
"""1 KB records in 16 KB batches to one partition over one connection, acks=all, one replica."""


def _table() -> Iterator[Workload]:
    yield BASE
    yield from _axes()
    yield from _reading()
    yield from _corners()


def _axes() -> Iterator[Workload]:
    for size, text in ((100, "100 B"), (10_000, "10 KB")):
        yield replace(BASE, name=f"records of {text}", group="record size", record_bytes=size)
    for size, text in ((1_100, "one record"), (131_072, "128 KB"), (1_000_000, "1 MB")):
        yield replace(BASE, name=f"requests of {text}", group="request size", batch_bytes=size)
    for count in (16, 256, 2_000):
        yield replace(BASE, name=f"{count:,} partitions", group="partitions", partitions=count)
    for count in (10, 100, 1_000):
        name = f"{count:,} connections"
        yield replace(BASE, name=name, group="connections", connections=count)
    yield replace(BASE, name="acks=1", group="promises", acks=1)
    yield replace(BASE, name="flush=commit", group="promises", flush="commit")
    yield replace(BASE, name="3 replicas", group="promises", replicas=3)
    yield replace(
        BASE, name="3 replicas, flush=commit", group="promises", replicas=3, flush="commit"
    )
    yield replace(BASE, name="3 replicas, acks=1", group="promises", replicas=3, acks=1)
    yield replace(BASE, name="zstd", group="compression", compression="zstd")


def _reading() -> Iterator[Workload]:
    tail = replace(
        BASE, name="", group="fan-out", kind="tail", batch_bytes=131_072, consumers=1, share=0.1
    )
    for count in (1, 2, 4, 8):
        text = "1 consumer" if count == 1 else f"{count} consumers"
        yield replace(tail, name=f"tail, {text}", consumers=count)
    catching_up = replace(BASE, name="", group="catch-up", kind="catch-up", consumers=1)
    for size, text in ((16_384, "16 KB"), (1_000_000, "1 MB")):
        yield replace(catching_up, name=f"catch-up, batches of {text}", batch_bytes=size)
    yield replace(catching_up, name="catch-up, zstd", batch_bytes=131_072, compression="zstd")
    yield replace(catching_up, name="catch-up, 16 partitions", batch_bytes=131_072, partitions=16)
    yield replace(
        tail, name="mixed: produce, tail, catch-up", group="mixed", kind="mixed", consumers=2
    )


def _corners() -> Iterator[Workload]:
    corner = replace(BASE, name="", group="corners")
    yield replace(
        corner, name="one record each, 100 connections", batch_bytes=1_100, connections=100
    )
    yield replace(
        corner,
        name="one record each, 100 connections, flush=commit",
        batch_bytes=1_100,
        connections=100,
        flush="commit",
    )
    yield replace(
        corner,
        name="many small: 100 B, 256 partitions, 100 connections",
        record_bytes=100,
        batch_bytes=1_100,
        partitions=256,
        connections=100,
    )
    yield replace(
        corner,
        name="the safe way: 3 replicas, flush=commit, 16 partitions, 10 connections, zstd",
        replicas=3,
        flush="commit",
        partitions=16,
        connections=10,
        compression="zstd",
    )
    for flush in ("os", "commit"):
        yield replace(
            corner,
            name=f"3 replicas, requests of 1 MB, flush={flush}",
            batch_bytes=1_000_000,
            replicas=3,
            flush=flush,
        )
    yield replace(
        corner,
        name="3 replicas, tail, 2 consumers",
        kind="tail",
        replicas=3,
        batch_bytes=131_072,
        consumers=2,
        share=0.1,
    )


WORKLOADS: Final[Sequence[Workload]] = tuple(_table())

QUICK: Final = (
    "base",
    "requests of 1 MB",
    "256 partitions",
    "100 connections",
    "flush=commit",
    "3 replicas",
    "tail, 1 consumer",
    "catch-up, batches of 1 MB",
)


def chosen(patterns: Sequence[str], *, quick: bool = False) -> list[Workload]:
    """Those whose name or group is, or matches, one of `patterns`; all without one.

    Raises `ValueError` for a pattern that none matches, with the names there are.
    """
    for pattern in patterns:
        if not any(_matches(workload, pattern) for workload in WORKLOADS):
            groups = sorted({workload.group for workload in WORKLOADS})
            raise ValueError(
                f"no workload is called or matches {pattern!r}; groups are: {', '.join(groups)}"
            )
    if patterns:
        return [w for w in WORKLOADS if any(_matches(w, pattern) for pattern in patterns)]
    return [w for w in WORKLOADS if not quick or w.name in QUICK]


def _matches(workload: Workload, pattern: str) -> bool:
    return any(fnmatchcase(text, pattern) for text in (workload.name, workload.group))
