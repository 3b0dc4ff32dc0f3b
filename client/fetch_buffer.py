"""What lies between the fetchers and the reader: how far each partition is, and what has arrived.

Pure but for the signal.
"""

import math
from collections import deque
from collections.abc import Callable

from tidemark.client.background import Signal
from tidemark.client.records import FetchedBatches
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId, Offset, TopicPartition


class Reading:
    """How far one partition has been fetched and handed out.

    Invariant: position <= fetch_offset. `session` grows when the position jumps; what was fetched
    in an older one is of no use.
    """

    __slots__ = (
        "buffered_bytes",
        "confirmed",
        "end",
        "failing_since",
        "failures",
        "fetch_offset",
        "high_watermark",
        "is_failed",
        "is_held",
        "is_paused",
        "leader_until",
        "not_before",
        "position",
        "position_epoch",
        "replica",
        "replica_until",
        "session",
        "topic_partition",
    )

    def __init__(
        self, topic_partition: TopicPartition, position: Offset, end: Offset | None
    ) -> None:
        self.topic_partition = topic_partition
        self.position = position
        self.position_epoch: Epoch = NO_EPOCH
        self.fetch_offset = position
        self.end = end
        self.high_watermark: Offset | None = None
        self.session = 0
        self.is_paused = False
        self.is_held = False
        """Nothing is fetched and handed out: its reader is being told that it comes, or goes."""
        self.is_failed = False
        self.failures = 0
        self.failing_since = math.inf
        self.not_before = -math.inf
        self.buffered_bytes = 0
        self.confirmed: Offset | None = None
        """All that was committed when it was asked for last; `None`: not asked for yet."""
        self.replica: NodeId | None = None
        """Whom it is fetched from in place of the leader, as the leader has said."""
        self.replica_until = -math.inf
        """After that the leader is asked again who is near."""
        self.leader_until = -math.inf
        """Until then it is fetched from the leader: the other one was of no use."""

    @property
    def is_at_end(self) -> bool:
        return self.end is not None and self.position >= self.end

    @property
    def is_fetched(self) -> bool:
        return self.end is not None and self.fetch_offset >= self.end

    def jump(self, offset: Offset) -> None:
        """Go on at `offset`, and forget what was fetched."""
        self.position = self.fetch_offset = offset
        self.position_epoch = NO_EPOCH
        self.session += 1
        self.buffered_bytes = 0
        self.is_failed = False
        self.recovered()

    def go_near(self, replica: NodeId, until: float) -> None:
        """Fetch from that replica, as the leader has said."""
        self.replica, self.replica_until = replica, until

    def go_back(self, until: float) -> None:
        """Fetch from the leader, at least until then."""
        self.replica, self.leader_until = None, until

    def recovered(self) -> None:
        self.failures, self.failing_since, self.not_before = 0, math.inf, -math.inf


class FetchBuffer:
    """What was fetched and not handed out yet, in the order of arrival, and what went wrong."""

    def __init__(self) -> None:
        self._fetched: deque[tuple[Reading, int, FetchedBatches]] = deque()
        self._failures: deque[tuple[Reading, int, Exception]] = deque()
        self.buffered_bytes = 0
        self.changed = Signal()

    def put(self, reading: Reading, fetched: FetchedBatches) -> None:
        self._fetched.append((reading, reading.session, fetched))
        reading.buffered_bytes += len(fetched.data)
        self.buffered_bytes += len(fetched.data)
        self.changed.set()

    def fail(self, reading: Reading, error: Exception) -> None:
        """Tell who asks next; until then nothing more of that partition is fetched."""
        reading.is_failed = True
        self._failures.append((reading, reading.session, error))
        self.changed.set()

    def take(self, is_read: Callable[[Reading], bool]) -> tuple[Reading, FetchedBatches] | None:
        """The oldest that is still of use.

        Raises what went wrong where the reader still is, once all that had come of that partition
        was taken; whoever asks again has it tried again.
        """
        self._raise_failure(is_read)
        while self._fetched:
            reading, session, fetched = self._fetched.popleft()
            self.buffered_bytes -= len(fetched.data)
            if session == reading.session and is_read(reading):
                reading.buffered_bytes -= len(fetched.data)
                return reading, fetched
        return None

    def _raise_failure(self, is_read: Callable[[Reading], bool]) -> None:
        for _ in range(len(self._failures)):
            reading, session, error = self._failures.popleft()
            if session != reading.session:
                continue
            is_wanted = is_read(reading)
            if is_wanted and reading.buffered_bytes:
                self._failures.append((reading, session, error))
                continue
            # Also where it is paused: then it fails anew once it is resumed.
            reading.is_failed = False
            reading.recovered()
            if is_wanted:
                raise error
