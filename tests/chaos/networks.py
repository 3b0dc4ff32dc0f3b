"""The network between the brokers, and between them and their clients, and how it goes wrong.

With root each broker has a network namespace of its own (`namespaces`). Without, all are on this
machine's loopback, and what they say passes through proxies (`proxies`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from tests.chaos.commands import tried
from tests.chaos.weather import Weather

Link = tuple[int, int]
"""From one node to another; the way back is another link."""

CLIENTS: Final = 0
"""The node that stands for all clients."""


class Wires(Protocol):
    """The connections of a network that passes on what they carry."""

    def delay(self, links: Iterable[Link], seconds: float) -> None:
        """What is sent on these links arrives so much later; on all others at once."""
        ...

    def reset(self, links: Iterable[Link]) -> None:
        """Break the connections that use these links, once."""
        ...


class Packets(Protocol):
    """The packets of a network that can lose single ones."""

    def disturb(self, weathers: Mapping[Link, Sequence[Weather]]) -> None:
        """Exactly these, on one link one after the other; all other links are as they should be."""
        ...


class Network(Protocol):
    """Where the brokers are. A cut link swallows what is sent: nobody is told."""

    name: str

    @property
    def packets(self) -> Packets | None:
        """Its packets, if it can lose single ones."""
        ...

    @property
    def wires(self) -> Wires | None:
        """The connections, if it passes on what they carry."""
        ...

    def bootstrap(self, node: int) -> str:
        """Where clients reach a broker."""
        ...

    def peer(self, node: int) -> str:
        """Where the others reach a broker."""
        ...

    def prefix(self, node: int) -> list[str]:
        """What to put before a command that is to run on a broker's machine."""
        ...

    def arguments(self, node: int) -> list[str]:
        """What to tell `tidemark serve` of its addresses."""
        ...

    def cut(self, links: Iterable[Link]) -> None:
        """Cut exactly these links; all others work."""
        ...

    def throttle(self, node: int, bytes_per_second: int | None) -> None:
        """Let a node send to the other brokers no faster than that; `None` ends it."""
        ...


def links_of(nodes: Sequence[int]) -> list[Link]:
    """All directed links, in order."""
    return [(a, b) for a in nodes for b in nodes if a != b]


@contextmanager
def open_network(nodes: Sequence[int], kind: str = "auto") -> Iterator[Network]:
    """`kind` is `namespaces`, `proxies`, or `auto`: namespaces where that is allowed."""
    # Here, not above: each kind needs this module.
    from tests.chaos.namespaces import Namespaces
    from tests.chaos.proxies import open_proxies

    if kind == "proxies" or (kind == "auto" and not may_make_namespaces()):
        with open_proxies(nodes) as proxies:
            yield proxies
        return
    network = Namespaces(nodes)
    try:
        network.build()
        with network.passing_packets():
            yield network
    finally:
        network.remove()


def may_make_namespaces() -> bool:
    name = f"tm-probe-{os.getpid()}"
    if os.geteuid() != 0 or not tried("ip", "netns", "add", name):
        return False
    return tried("ip", "netns", "del", name)
