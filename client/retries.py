"""When to try again: exponential backoff with jitter, and which failures it is for.

Pure: the random numbers are an argument, and nothing here sleeps.
"""

from collections.abc import Iterator
from random import Random

from tidemark.client.security.tls import UntrustedBroker
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.values import dataclass

# These say that what the client believes about who leads what is out of date.
STALE_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.NETWORK_EXCEPTION,
    }
)

# These say that the group's coordinator has to be looked up again.
STALE_COORDINATOR = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION}
)

# These may come from a broker that is cut off from the others; its metadata say whether it is.
LOST_BROKER = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Delays that double from `initial_seconds` up to `max_seconds`.

    Each is drawn from the upper part of its interval: `jitter` is the fraction that is random, so
    that clients which failed together do not come back together.
    """

    initial_seconds: float = 0.05
    max_seconds: float = 1.0
    jitter: float = 0.4

    def delay(self, attempt: int, random: Random) -> float:
        """The pause after the `attempt`-th failure in a row, counted from 0."""
        # The exponent is bounded because 2.0 ** 1024 is an OverflowError, not infinity.
        longest = min(self.max_seconds, self.initial_seconds * 2.0 ** min(attempt, 60))
        return longest * (1.0 - self.jitter * random.random())

    def delays(self, random: Random) -> Iterator[float]:
        """The pauses between attempts, without end: the caller holds the deadline."""
        attempt = 0
        while True:
            yield self.delay(attempt, random)
            attempt += 1


def may_pass(error: OSError | RequestError) -> bool:
    """Whether the same operation may succeed later: network errors, and the retriable codes."""
    if isinstance(error, OSError):
        return not isinstance(error, UntrustedBroker)
    return error.code.retriable
