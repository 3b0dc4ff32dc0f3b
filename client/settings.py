"""What a client can be told, each setting with its unit and its default."""

from collections.abc import Mapping
from dataclasses import field

from tidemark.client.limits import require_name, require_patience, require_seconds, require_whole
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
    metadata_max_idle_seconds: float = 300.0
    """A topic that no consumer reads and that was not sent to for so long is forgotten: its
    metadata is asked for again when it is needed (Kafka's `metadata.max.idle.ms`)."""
    frame_bytes_max: int = 128 * 1024 * 1024
    """The largest response that is accepted; a longer one closes the connection."""
    version_max: Mapping[int, int] = field(default_factory=dict)
    """The newest version to speak of an API, by its key: for brokers that list more than they can
    read (librdkafka's mock broker does, with JoinGroup)."""
    backoff: Backoff = field(default_factory=Backoff)

    def __post_init__(self) -> None:
        require_name("client_id", self.client_id, may_be_empty=True)
        if self.rack is not None:
            require_name("rack", self.rack, may_be_empty=True)
        for name, kind in (("sasl", Sasl), ("tls", Tls)):
            given = getattr(self, name)
            if not isinstance(given, kind | None):
                raise TypeError(f"{name} is a tidemark.client.{kind.__name__}, not {given!r}")
        if not isinstance(self.backoff, Backoff):
            raise TypeError(f"backoff is a Backoff, not {self.backoff!r}")
        require_seconds("connect_timeout_seconds", self.connect_timeout_seconds)
        require_seconds("request_timeout_seconds", self.request_timeout_seconds)
        require_seconds("confirm_timeout_seconds", self.confirm_timeout_seconds)
        require_patience("retry_timeout_seconds", self.retry_timeout_seconds)
        require_patience("unknown_topic_seconds", self.unknown_topic_seconds)
        require_patience("metadata_max_age_seconds", self.metadata_max_age_seconds)
        require_patience("metadata_max_idle_seconds", self.metadata_max_idle_seconds)
        require_whole("frame_bytes_max", self.frame_bytes_max, least=1)
