"""A network namespace for each broker, joined by a bridge.

Who hears whom is then a matter of neighbour tables: while A has a wrong hardware address for B,
what A sends to B is lost without a word, and what B sends to A still arrives. So any subset of the
directed links can be cut, without a packet filter. With the address of the detour (`detour`) in its
place, what A sends to B comes by there, and some of it is lost, late or doubled.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from tests.chaos.commands import run, tried
from tests.chaos.detour import HARDWARE, Detour
from tests.chaos.networks import CLIENTS, Link, Packets, Wires, links_of
from tests.chaos.weather import Weather

_NOWHERE: Final = "02:00:00:00:ff:ff"
_CLIENTS_HOST: Final = 254
_KAFKA_PORT: Final = 9092
_PEER_PORT: Final = 9093


class Namespaces:
    """A bridge in a namespace of its own, one namespace for each broker, and the clients' host."""

    name = "network namespaces"
    wires: Wires | None = None
    packets: Packets | None = None
    """Itself, where the machine has packet sockets and while they are passed on."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self._nodes = list(nodes)
        self._tag = f"tm{os.getpid() % 10_000}"
        self._subnet = f"10.77.{os.getpid() % 250}"
        self._links = links_of([CLIENTS, *nodes])
        self._cut: frozenset[Link] = frozenset()
        self._disturbed: frozenset[Link] = frozenset()
        self._next_hops: dict[Link, str] = {}
        """Whom neighbour tables name now."""
        self._detour = Detour(
            self._detour_device,
            {_number(node): (node, _hardware(node)) for node in [CLIENTS, *nodes]},
        )

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
        own = self._clients_device
        self._plug_in(own, f"{self._tag}p")
        run("ip", "link", "set", own, "address", _hardware(CLIENTS))
        run("ip", "addr", "add", f"{self._host(CLIENTS)}/24", "dev", own)
        self._plug_in(self._detour_device, f"{self._tag}q")
        for device in (own, self._detour_device):
            run("ip", "link", "set", device, "up")
        self._route()

    @contextmanager
    def passing_packets(self) -> Iterator[None]:
        """While single packets may be lost, where the machine has what that takes."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._detour.running())
                self.packets = self
            except OSError:
                pass
            yield
        self.packets = None

    def _plug_in(self, device: str, port: str) -> None:
        """A device of this machine, into the switch."""
        run(
            "ip", "link", "add", device, "type", "veth", "peer", "name", port, "netns", self._switch
        )
        run("ip", "-n", self._switch, "link", "set", port, "master", "bridge", "up")

    def _add(self, node: int) -> None:
        name, switch, port = self._namespace(node), self._switch, f"{self._tag}p{node}"
        run("ip", "netns", "add", name)
        run("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "eth0", "netns", name)
        run("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
        run("ip", "-n", name, "link", "set", "eth0", "address", _hardware(node))
        run("ip", "-n", name, "addr", "add", f"{self._host(node)}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")

    def cut(self, links: Iterable[Link]) -> None:
        self._cut = frozenset(links)
        self._route()

    def disturb(self, weathers: Mapping[Link, Sequence[Weather]]) -> None:
        self._detour.disturb(weathers)
        self._disturbed = frozenset(weathers)
        self._route()

    def _route(self) -> None:
        for link in self._links:
            hop = HARDWARE if link in self._disturbed else _hardware(link[1])
            if link in self._cut:
                hop = _NOWHERE
            if self._next_hops.get(link) != hop:
                self._set_neighbour(link, hop)
                self._next_hops[link] = hop

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
        for device in (self._clients_device, self._detour_device):
            tried("ip", "link", "del", device)
        for name in (*map(self._namespace, self._nodes), self._switch):
            tried("ip", "netns", "del", name)

    @property
    def _switch(self) -> str:
        return f"{self._tag}s"

    @property
    def _clients_device(self) -> str:
        return f"{self._tag}c"

    @property
    def _detour_device(self) -> str:
        """Has no address: what comes is for nobody here, but is seen."""
        return f"{self._tag}d"

    def _host(self, node: int) -> str:
        return f"{self._subnet}.{_number(node)}"

    def _namespace(self, node: int) -> str:
        return f"{self._tag}b{node}"


def _number(node: int) -> int:
    """The last byte of its addresses."""
    return _CLIENTS_HOST if node == CLIENTS else node


def _hardware(node: int) -> str:
    return f"02:00:00:00:00:{_number(node):02x}"
