"""A network namespace for each broker, joined by a bridge.

Who hears whom is then a matter of neighbour tables: while A has a wrong hardware address for B,
what A sends to B is lost without a word, and what B sends to A still arrives. So any subset of the
directed links can be cut, without a packet filter.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

from tests.chaos.commands import run, tried
from tests.chaos.networks import CLIENTS, Link, Wires, links_of

_NOWHERE: Final = "02:00:00:00:ff:ff"
_CLIENTS_HOST: Final = 254
_KAFKA_PORT: Final = 9092
_PEER_PORT: Final = 9093


class Namespaces:
    """A bridge in a namespace of its own, one namespace for each broker, and the clients' host."""

    name = "network namespaces"
    wires: Wires | None = None

    def __init__(self, nodes: Sequence[int]) -> None:
        self._nodes = list(nodes)
        self._tag = f"tm{os.getpid() % 10_000}"
        self._subnet = f"10.77.{os.getpid() % 250}"
        self._links = links_of([CLIENTS, *nodes])
        self._cut: frozenset[Link] = frozenset(self._links)
        self._hardware: dict[int, str] = {}

    def bootstrap(self, node: int) -> str:
        return f"{self._host(node)}:{_KAFKA_PORT}"

    def peer(self, node: int) -> str:
        return f"{self._host(node)}:{_PEER_PORT}"

    def prefix(self, node: int) -> list[str]:
        # Not `ip netns exec`: that gives a process a mount namespace of its own too, in which the
        # disks of others would stay mounted when they lose their power.
        return ["nsenter", f"--net=/var/run/netns/{self._namespace(node)}"]

    def arguments(self, node: int) -> list[str]:
        return ["--listen", self.bootstrap(node), "--peer-listen", self.peer(node)]

    def build(self) -> None:
        switch = self._switch
        run("ip", "netns", "add", switch)
        run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", switch, "link", "set", "bridge", "up")
        for node in self._nodes:
            self._add(node)
        port, own = f"{self._tag}p", self._clients_device
        run("ip", "link", "add", own, "type", "veth", "peer", "name", port, "netns", switch)
        run("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
        self._hardware[CLIENTS] = _hardware(_CLIENTS_HOST)
        run("ip", "link", "set", own, "address", self._hardware[CLIENTS])
        run("ip", "addr", "add", f"{self._host(CLIENTS)}/24", "dev", own)
        run("ip", "link", "set", own, "up")
        self.cut(())

    def _add(self, node: int) -> None:
        name, switch, port = self._namespace(node), self._switch, f"{self._tag}p{node}"
        self._hardware[node] = _hardware(node)
        run("ip", "netns", "add", name)
        run("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "eth0", "netns", name)
        run("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
        run("ip", "-n", name, "link", "set", "eth0", "address", self._hardware[node])
        run("ip", "-n", name, "addr", "add", f"{self._host(node)}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")

    def cut(self, links: Iterable[Link]) -> None:
        gone = frozenset(links)
        for link in self._links:
            if (link in gone) != (link in self._cut):
                self._set_neighbour(link, _NOWHERE if link in gone else self._hardware[link[1]])
        self._cut = gone

    def _set_neighbour(self, link: Link, hardware: str) -> None:
        a, b = link
        where = [] if a == CLIENTS else ["-n", self._namespace(a)]
        device = self._clients_device if a == CLIENTS else "eth0"
        entry = (self._host(b), "lladdr", hardware, "dev", device, "nud", "permanent")
        run("ip", *where, "neigh", "replace", *entry)

    def throttle(self, node: int, bytes_per_second: int | None) -> None:
        name = self._namespace(node)
        tried("tc", "-n", name, "qdisc", "del", "dev", "eth0", "root")
        if bytes_per_second is not None:
            how = ("tbf", "rate", f"{8 * bytes_per_second}bit", "burst", "32kb", "latency", "400ms")
            run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", *how)

    def remove(self) -> None:
        tried("ip", "link", "del", self._clients_device)
        for name in (*map(self._namespace, self._nodes), self._switch):
            tried("ip", "netns", "del", name)

    @property
    def _switch(self) -> str:
        return f"{self._tag}s"

    @property
    def _clients_device(self) -> str:
        return f"{self._tag}c"

    def _host(self, node: int) -> str:
        return f"{self._subnet}.{_CLIENTS_HOST if node == CLIENTS else node}"

    def _namespace(self, node: int) -> str:
        return f"{self._tag}b{node}"


def _hardware(host: int) -> str:
    return f"02:00:00:00:00:{host:02x}"
