"""What all parts of a broker's network to the others share, and who is told of what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

import trio

from tidemark.broker.peers.belonging import Belonging
from tidemark.broker.peers.frame_socket import SocketServices
from tidemark.broker.peers.peer_tls import PeerTls
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass


class PeerEvents(Protocol):
    """Who is told of the other brokers: always inside a turn. None of it may raise.

    `peer_up` comes before the first message of a broker, and `peer_down` after its last.
    """

    def peer_up(self, node: NodeId, incarnation: int) -> None:
        """Also of one that is up: its connections are new, what was on its way may be lost."""

    def peer_down(self, node: NodeId) -> None: ...
    def receive(self, source: NodeId, messages: Sequence[PeerMessage]) -> None:
        """What arrived in one frame. Records stay valid for as long as they are held, but for
        those of `SteadyAppends`: only until this returns."""


@dataclass(slots=True, kw_only=True)
class PeerServices:
    """All of them share one, which changes with what becomes of this broker."""

    own: BrokerMetadata
    cluster_id: str | None
    """`None` until this broker belongs to one."""
    sockets: SocketServices
    events: PeerEvents
    tasks: trio.Nursery
    rng: Random
    frame_bytes_max: int
    belonging: Belonging
    tls: PeerTls | None
    """`None` where brokers speak without it."""
    is_stopping: bool = False
    """Connections end, and nobody is told any more."""
