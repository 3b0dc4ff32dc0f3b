"""The network between the brokers, and how to cut it.

With root each broker has a network namespace, joined to the others by a bridge. Who hears whom is
then a matter of neighbour tables: while A has a wrong hardware address for B, what A sends to B is
lost without a word, and what B sends to A still arrives. So any subset of the directed links can be
cut, without a packet filter.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from tests.chaos.commands import run, tried

Link = tuple[int, int]
"""From one node to another; the way back is another link."""

_NOWHERE: Final = "02:00:00:00:ff:ff"
_CLIENTS: Final = 254


class Network(Protocol):
    """Where the brokers are."""

    can_cut: bool

    def host(self, node: int) -> str:
        """The address of a broker's machine."""
        ...

    def prefix(self, node: int) -> list[str]:
        """What to put before a command that is to run on a broker's machine."""
        ...

    def cut(self, links: Iterable[Link]) -> None:
        """Cut exactly these links; all others work."""
        ...

    def throttle(self, node: int, rate: str | None) -> None:
        """Let a node send no faster than, say, `4mbit`; `None` ends that."""
        ...


def links_of(nodes: Sequence[int]) -> list[Link]:
    """All directed links, in order."""
    return [(a, b) for a in nodes for b in nodes if a != b]


@contextmanager
def open_network(nodes: Sequence[int]) -> Iterator[Network]:
    """Namespaces where that is allowed, else this machine's own loopback."""
    if os.geteuid() != 0 or not tried("ip", "netns", "add", "tm-probe"):
        yield Loopback()
        return
    run("ip", "netns", "del", "tm-probe")
    network = Namespaces(nodes)
    try:
        network.build()
        yield network
    finally:
        network.remove()


class Loopback:
    """All on 127.0.0.1: nothing can be cut."""

    can_cut = False

    def host(self, node: int) -> str:
        del node
        return "127.0.0.1"

    def prefix(self, node: int) -> list[str]:
        del node
        return []

    def cut(self, links: Iterable[Link]) -> None:
        assert not list(links), "there is nothing here that could be cut"

    def throttle(self, node: int, rate: str | None) -> None:
        raise NotImplementedError(f"{node} cannot be held to {rate}")


class Namespaces:
    """A bridge in a namespace of its own, one namespace for each broker, and the clients' host."""

    can_cut = True

    def __init__(self, nodes: Sequence[int]) -> None:
        self._nodes = list(nodes)
        self._tag = f"tm{os.getpid() % 10_000}"
        self._subnet = f"10.77.{os.getpid() % 250}"

    def host(self, node: int) -> str:
        return f"{self._subnet}.{node}"

    def prefix(self, node: int) -> list[str]:
        # Not `ip netns exec`: that gives a process a mount namespace of its own too, in which the
        # disks of others would stay mounted when they lose their power.
        return ["nsenter", f"--net=/var/run/netns/{self._name(node)}"]

    def build(self) -> None:
        switch = self._switch
        run("ip", "netns", "add", switch)
        run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", switch, "link", "set", "bridge", "up")
        for node in self._nodes:
            self._add(node)
        port, own = f"{self._tag}p", f"{self._tag}c"
        run("ip", "link", "add", own, "type", "veth", "peer", "name", port, "netns", switch)
        run("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
        run("ip", "addr", "add", f"{self.host(_CLIENTS)}/24", "dev", own)
        run("ip", "link", "set", own, "up")
        self.cut(())

    def _add(self, node: int) -> None:
        name, switch, port = self._name(node), self._switch, f"{self._tag}p{node}"
        run("ip", "netns", "add", name)
        run("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "eth0", "netns", name)
        run("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
        run("ip", "-n", name, "link", "set", "eth0", "address", _hardware(node))
        run("ip", "-n", name, "addr", "add", f"{self.host(node)}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")

    def cut(self, links: Iterable[Link]) -> None:
        gone = set(links)
        for a, b in links_of(self._nodes):
            address = _NOWHERE if (a, b) in gone else _hardware(b)
            entry = (self.host(b), "lladdr", address, "dev", "eth0", "nud", "permanent")
            run("ip", "-n", self._name(a), "neigh", "replace", *entry)

    def throttle(self, node: int, rate: str | None) -> None:
        name = self._name(node)
        tried("tc", "-n", name, "qdisc", "del", "dev", "eth0", "root")
        if rate is not None:
            how = ("tbf", "rate", rate, "burst", "32kb", "latency", "400ms")
            run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", *how)

    def remove(self) -> None:
        tried("ip", "link", "del", f"{self._tag}c")
        for name in (*map(self._name, self._nodes), self._switch):
            tried("ip", "netns", "del", name)

    @property
    def _switch(self) -> str:
        return f"{self._tag}s"

    def _name(self, node: int) -> str:
        return f"{self._tag}b{node}"


def _hardware(node: int) -> str:
    return f"02:00:00:00:00:{node:02x}"
