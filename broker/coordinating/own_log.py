"""The log of a coordinator's partition, while this broker leads it in one epoch.

Batches are appended in their order, and reported in their order, however their outcomes come. One
is committed by the same leadership that appended it, or has failed: even if the record comes to be
committed by another leader, nobody is told so here.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.errors import ErrorCode, MalformedMessage, RequestError

logger = logging.getLogger(__name__)

Report = Callable[[int, ErrorCode], None]
"""What became of a write, by its number; the error is one for clients of a coordinator."""

# What a failed append means to a client that asked its coordinator for something.
_APPEND_ERRORS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    # The producer of a transaction is fenced: that is its own matter.
    ErrorCode.INVALID_PRODUCER_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
    # To ask again, or another coordinator, would not help.
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.UNKNOWN_SERVER_ERROR: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class OwnLog:
    """What one coordinator writes. All of it runs on the loop's thread."""

    def __init__(self, replica: Replica, report: Report, *, batch_bytes_max: int) -> None:
        """`batch_bytes_max`: a larger batch is not appended. No follower could be sent it: it would
        end all connections between brokers, each time anew."""
        self._replica = replica
        self._batch_bytes_max = batch_bytes_max
        self._odd_events = OddEvents(logger)
        self._report = report
        self._epoch = replica.epoch
        self._to_append: deque[tuple[int, bytes | None]] = deque()
        self._is_appending = False
        self._is_held = False
        self._is_given_up = False
        # Writes whose outcome was not reported yet, in order; None while it is not known.
        self._outcomes: dict[int, ErrorCode | None] = {}

    @property
    def is_current(self) -> bool:
        """Whether the leadership still lasts in which this was made."""
        return self._replica.is_serving and self._replica.epoch == self._epoch

    def append(self, number: int, batch: bytes | None) -> None:
        """Write it after what came before; `flush` has it done. `None`: what cannot be `encoded`,
        which fails in its turn."""
        self._to_append.append((number, batch))

    def flush(self) -> None:
        self._append_all(may_be_held=True)

    def give_up(self) -> None:
        """Append nothing more; whatever becomes of the rest is no news."""
        self._is_given_up = True
        self._to_append.clear()
        if self._is_held:
            self._replica.line.leave(self)
            self._is_held = False

    def go_on(self, *, may_be_held: bool) -> None:
        """For the replica's line: write what was held, or have it refused."""
        self._is_held = False
        self._append_all(may_be_held=may_be_held)

    def _append_all(self, *, may_be_held: bool) -> None:
        # An append may be committed at once, and what follows from that come back here.
        if self._is_appending or self._is_held:
            return
        self._is_appending = True
        while self._to_append and not (may_be_held and self._replica.is_holding):
            self._append(*self._to_append.popleft())
        self._is_appending = False
        if self._to_append:
            # The lead is about to go: as a producer's request, what is to be written waits.
            self._is_held = True
            self._replica.line.join(self, 0)

    def _append(self, number: int, batch: bytes | None) -> None:
        self._outcomes[number] = None
        try:
            if not self.is_current:
                # The log may have gone on without who writes: what they want to write is wrong.
                raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            if batch is None:
                raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR, "there are no bytes for it")
            if len(batch) > self._batch_bytes_max:
                raise RequestError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"{len(batch)} bytes, of which {self._batch_bytes_max} may be in one batch",
                )
            end_offset = self._replica.append_own(batch).end_offset
        except RequestError as error:
            self._settle(number, error)
        else:
            self._replica.when_committed(end_offset, partial(self._settle, number))

    def _settle(self, number: int, error: RequestError | None) -> None:
        """The write's outcome is known; report what can be reported in order."""
        if error is not None and not self._is_given_up:
            # A client can have its own fail, as often as it likes: a producer that is fenced.
            self._odd_events.warn(
                "failed writes", "%s: a write failed: %s", self._replica.name, error
            )
        self._outcomes[number] = ErrorCode.NONE if error is None else _as_coordinators(error.code)
        while self._outcomes:
            first = next(iter(self._outcomes))
            outcome = self._outcomes[first]
            if outcome is None:
                return
            del self._outcomes[first]
            self._report(first, outcome)


def encoded(encode: Callable[[], bytes]) -> bytes | None:
    """What `encode` gives; `None` where there are no bytes for it: a record's strings have lengths
    of two bytes, and a client's name for a group, say, may be longer.

    A machine counts on hearing of each of its writes, so one must not end in an exception.
    """
    try:
        return encode()
    except MalformedMessage as error:
        logger.warning("what a coordinator is to write cannot be encoded: %s", error)
        return None


def _as_coordinators(code: ErrorCode) -> ErrorCode:
    return _APPEND_ERRORS.get(code, ErrorCode.COORDINATOR_NOT_AVAILABLE)
