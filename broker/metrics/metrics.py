"""What a broker counts while it works. One `Metrics` per broker, never a global one.

Children are made once and kept by whoever counts: a connection keeps its API's, a replica its
topic's. What can be read off the broker at any time (offsets, sizes, lag) is not counted here but
looked up at the scrape.
"""

from enum import StrEnum
from typing import Final

from tidemark.broker.metrics.balance_counts import BalanceMetrics
from tidemark.broker.metrics.compaction_counts import CompactionMetrics
from tidemark.broker.metrics.counts import Count, Latency
from tidemark.broker.metrics.move_counts import MoveMetrics
from tidemark.broker.metrics.peer_counts import PeerMetrics
from tidemark.broker.metrics.quota_counts import QuotaMetrics
from tidemark.broker.metrics.read_counts import ReadMetrics
from tidemark.broker.metrics.reassignment_counts import ReassignmentMetrics
from tidemark.broker.metrics.transaction_counts import TransactionMetrics
from tidemark.protocol.registry import APIS

OTHER: Final = "(other)"
"""The label of everything over a limit. No topic or group can have this name by accident: a
parenthesis is not legal in a topic's."""


class BadInput(StrEnum):
    """What clients send that is not served, each counted."""

    FRAME_TOO_LARGE = "frame_too_large"
    MALFORMED_MESSAGE = "malformed_message"
    UNSUPPORTED_VERSION = "unsupported_version"
    CORRUPT_BATCH = "corrupt_batch"
    UNSUPPORTED_BATCH = "unsupported_batch"
    RECORDS_TOO_LARGE = "records_too_large"
    NOT_AUTHENTICATED = "not_authenticated"
    FAILED_AUTHENTICATION = "failed_authentication"
    FAILED_TLS = "failed_tls"
    NOT_ALLOWED = "not_allowed"


class ConnectionEnd(StrEnum):
    """Why a connection was closed."""

    BY_CLIENT = "by_client"
    BAD_INPUT = "bad_input"
    IDLE = "idle"
    SLOW = "slow"
    TOO_MANY = "too_many"
    CUT_OFF = "cut_off"
    STOPPING = "stopping"
    ERROR = "error"


class ApiMetrics:
    """One API's. `requests` counts those that came, `latency` those that were answered."""

    __slots__ = ("errors", "latency", "requests")

    def __init__(self) -> None:
        self.requests = Count()
        self.errors = Count()
        self.latency = Latency()


class TopicMetrics:
    """One topic's, or that of all topics over the limit."""

    __slots__ = ("bytes_in", "bytes_out", "records_in", "records_out")

    def __init__(self) -> None:
        self.bytes_in = Count()
        self.bytes_out = Count()
        self.records_in = Count()
        self.records_out = Count()


class Metrics:
    """All counts of one broker."""

    def __init__(self, *, topics_max: int) -> None:
        self.apis: dict[str, ApiMetrics] = {}
        self.topics: dict[str, TopicMetrics] = {OTHER: TopicMetrics()}
        self._topics_max = topics_max

        self.received_bytes = Count()
        self.sent_bytes = Count()
        self.connections_opened = Count()
        self.connections_closed = {reason: Count() for reason in ConnectionEnd}
        self.bad_input = {kind: Count() for kind in BadInput}

        self.flush = Latency()
        """How long each sync of the disk writer took."""
        self.flushed_turns = Count()
        """Turns that those syncs covered; by the number of syncs, the size of a group commit."""

        self.peers = PeerMetrics()
        self.moves = MoveMetrics()
        self.balance = BalanceMetrics()
        self.reassignments = ReassignmentMetrics()
        self.reads = ReadMetrics()
        self.quotas = QuotaMetrics()
        self.compaction = CompactionMetrics()
        self.transactions = TransactionMetrics()

        self.storage_errors = Count()
        """Appends, reads and openings that the disk or broken files did not allow."""
        self.recovery_seconds = 0.0
        self.recovered_bytes = 0
        self.truncated_bytes = 0

    def api(self, api_key: int) -> ApiMetrics:
        """The API's metrics; keys that are not spoken share one."""
        name = APIS[api_key].name if api_key in APIS else OTHER
        return self.apis.setdefault(name, ApiMetrics())

    def topic(self, name: str) -> TopicMetrics:
        """The topic's metrics; once the limit is reached, those that all new topics share."""
        if name not in self.topics:
            if len(self.topics) > self._topics_max:
                return self.topics[OTHER]
            self.topics[name] = TopicMetrics()
        return self.topics[name]

    @property
    def record_bytes(self) -> int:
        """Of all topics, in and out."""
        return sum(each.bytes_in.value + each.bytes_out.value for each in self.topics.values())

    def forget_topic(self, name: str) -> None:
        """Stop showing a deleted topic, which makes room for another."""
        self.topics.pop(name, None)

    @property
    def connections(self) -> int:
        """Connections open now."""
        closed = sum(count.value for count in self.connections_closed.values())
        return self.connections_opened.value - closed
