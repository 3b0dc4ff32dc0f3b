"""What a broker counts of its connections to and from other brokers."""

from __future__ import annotations

from enum import StrEnum

from tidemark.broker.metrics.counts import Count
from tidemark.protocol.types import NodeId


class PeerEnd(StrEnum):
    """Why a connection between brokers ended."""

    BY_PEER = "by_peer"
    BAD_INPUT = "bad_input"
    FAILED_TLS = "failed_tls"
    REFUSED = "refused"
    REPLACED = "replaced"
    OVERFLOW = "overflow"
    NO_HELLO = "no_hello"
    TOO_MANY = "too_many"
    LEFT_OUT = "left_out"
    STOPPING = "stopping"
    ERROR = "error"


class PeerMetrics:
    """Of all other brokers together, but for which of them are up."""

    __slots__ = (
        "attempts",
        "ended",
        "received_bytes",
        "received_frames",
        "refused_hellos",
        "sent_bytes",
        "sent_frames",
        "up",
    )

    def __init__(self) -> None:
        self.up: dict[NodeId, bool] = {}
        self.attempts = Count()
        """Connections that were tried, the first ones too."""
        self.ended = {reason: Count() for reason in PeerEnd}
        self.refused_hellos = Count()
        """By this broker, of those who came to it."""
        self.received_bytes = Count()
        self.sent_bytes = Count()
        self.received_frames = Count()
        self.sent_frames = Count()
