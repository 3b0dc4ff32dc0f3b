"""What a client can be told, each setting with its unit and its default."""

from collections.abc import Mapping
from dataclasses import field

from tidemark.client.retries import Backoff
from tidemark.client.security import Sasl, Tls
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Settings of one client; everything it opens (producers, consumers) inherits them."""

    client_id: str = "tidemark"
    rack: str | None = None
    """The rack or zone this client is in: its consumers read from the replica or observer there,
    if there is one (Kafka's `client.rack`)."""
    sasl: Sasl | None = None
    """Who this client is, and its password."""
    tls: Tls | None = None
    """Whom to trust; without it, what is sent is not encrypted."""
    connect_timeout_seconds: float = 10.0
    """For each of: the connection, TLS, finding the versions and authenticating."""
    request_timeout_seconds: float = 30.0
    """How long one request may stay unanswered before its connection is given up."""
    confirm_timeout_seconds: float = 3.0
    """How long a majority may take to say who leads, for a read that must not be stale, before the
    leader says that it cannot be certain."""
    retry_timeout_seconds: float = 60.0
    """How long an operation is tried again on errors that may pass, before the last one is raised.
    A producer's bound is its own `delivery_timeout_seconds`."""
    unknown_topic_seconds: float = 2.0
    """How long a topic that nobody knows is asked for again before it counts as not there."""
    metadata_max_age_seconds: float = 300.0
    frame_bytes_max: int = 128 * 1024 * 1024
    """The largest response that is accepted; a longer one closes the connection."""
    version_max: Mapping[int, int] = field(default_factory=dict)
    """The newest version to speak of an API, by its key: for brokers that list more than they can
    read (librdkafka's mock broker does, with JoinGroup)."""
    backoff: Backoff = field(default_factory=Backoff)
