"""How far a follower is: what it is sent next, and what is in flight to it."""

from __future__ import annotations

from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.held import Held
from tidemark.partitions.raft.marks import mark
from tidemark.partitions.raft.messages import AppendResponse
from tidemark.partitions.raft.replica import NOWHERE
from tidemark.protocol.types import NO_OFFSET, NodeId, Offset, Position
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProgress:
    """How far a node is, for those who ask from outside."""

    node: NodeId
    match: Position
    """Durable there, as far as it has said so; less than any entry if it never has."""
    next: Position
    """What is sent next begins behind it."""
    is_voter: bool
    answers: int
    """Grows with each answer that told something new: no progress is what does not move this."""
    bytes_sent: int
    """Of records, in this epoch; what was sent again counts again."""
    allowance: int | None
    """How many more bytes of records it may be sent; below 0 after a run that was larger. `None` is
    no limit."""

    @property
    def end_offset(self) -> Offset:
        """Up to where it holds the log; `NO_OFFSET` if it has not said anything to this leader."""
        return NO_OFFSET if self.match == NOWHERE else self.match.offset


class Progress:
    """One follower. Requests go out without waiting for answers, within a window of bytes.

    The follower takes them in order, so an answer to one answers all before it. Only a refusal of
    the first in flight says anything: the later ones may have overtaken it.

    Invariant: `held.match <= next`.
    """

    __slots__ = (
        "_in_flight",
        "allowance",
        "answers",
        "bytes_in_flight",
        "bytes_sent",
        "has_come",
        "held",
        "is_probing",
        "must_probe",
        "next",
    )

    def __init__(self, after: Position) -> None:
        """Nothing is known of the follower; `after` is where its log may end."""
        self.held = Held()
        self.next = after
        # Until it has been found where the logs part, one request at a time.
        self.is_probing = True
        self.must_probe = True
        self.bytes_in_flight = self.bytes_sent = 0
        # How many bytes of records it may still be sent; below 0 after a run that was larger.
        # `None` is no limit.
        self.allowance: int | None = None
        self.has_come = False
        """A learner: it may be in step already, and take what begins beyond its end for early."""
        self.answers = 0
        self._in_flight: list[tuple[Position, Position, int]] = []  # prev, end, bytes

    @property
    def is_steady(self) -> bool:
        """Whether it takes what is appended, and nothing else has to be told to it."""
        return (
            not self.is_probing
            and not self.must_probe
            and self.held.clean_at is None
            and self.allowance is None
        )

    @property
    def is_to_be_asked(self) -> bool:
        """Whether it has come in the middle of an epoch, and nothing is known of its log."""
        return self.has_come and self.held.match == NOWHERE

    @property
    def has_in_flight(self) -> bool:
        return bool(self._in_flight)

    @property
    def _sent_after(self) -> Position | None:
        """Where the first request in flight begins."""
        return self._in_flight[0][0] if self._in_flight else None

    def seen(self, node: NodeId, *, is_voter: bool) -> NodeProgress:
        """As it is told outside."""
        return NodeProgress(
            node=node,
            match=self.held.match,
            next=self.next,
            is_voter=is_voter,
            answers=self.answers,
            bytes_sent=self.bytes_sent,
            allowance=self.allowance,
        )

    def may_send(self, window_bytes: int) -> bool:
        if self.is_probing:
            return not self._in_flight
        return self.bytes_in_flight < window_bytes

    def wants(self, last: Position) -> bool:
        """Whether there is something to be sent to it, now or when the window opens."""
        if self.allowance is not None and self.allowance <= 0:
            return False
        return self.next != last or self.must_probe or not self.held.is_told

    def run_bytes_max(self, bytes_max: int) -> int:
        """How much to send at once; it is more where a single batch is."""
        return bytes_max if self.allowance is None else min(self.allowance, bytes_max)

    def sent(self, end: Position, size_bytes: int) -> None:
        """Entries from `next` to `end` are under way."""
        self._in_flight.append((self.next, end, size_bytes))
        self.bytes_in_flight += size_bytes
        self.bytes_sent += size_bytes
        if self.allowance is not None:
            self.allowance -= size_bytes
        self.next = end
        self.must_probe = False

    def allow(self, more_bytes: int | None) -> None:
        """It may be sent so much more, or anything. What was not used before is not added."""
        if more_bytes is None:
            self.allowance = None
        else:
            self.allowance = min((self.allowance or 0) + more_bytes, more_bytes)

    def restart(self) -> None:
        """Forget what is in flight; begin again at what is known, with one request."""
        if self.held.match != NOWHERE:
            self.next = self.held.match
        elif self._in_flight:
            self.next = self._in_flight[0][0]
        self._forget_in_flight()
        self.is_probing = self.must_probe = True
        self.held.ask()

    def hear(self, response: AppendResponse, last: Position) -> bool:
        """It has answered, from whatever state it is in now. Returns whether what it says of the
        log is worth anything."""
        return self.held.hear(response, last, self._sent_after)

    def succeeded(self, prev: Position, match: Position) -> bool:
        """The follower holds up to `match` durably. Returns whether that is news."""
        in_flight, held = self._in_flight, self.held
        done = 0
        for _, end, size_bytes in in_flight:
            if end > match:
                break
            done += 1
            self.bytes_in_flight -= size_bytes
        first_prev = in_flight[0][0] if in_flight else None
        if done:
            del in_flight[:done]
        elif first_prev == prev and match > prev:
            mark("short_success")
            self._forget_in_flight()
            self.next = match
        else:
            mark("late_success")
        is_news = held.grow(match)
        if self.next < held.match:  # acknowledged before what is in flight was forgotten
            self.next = held.match
        if is_news or done:
            self.is_probing = False
            self.answers += 1
        return is_news

    def refused(self, response: AppendResponse, conflict: Position, shape: LogShape) -> None:
        """The logs part before the request's `prev`: try again, from an earlier place."""
        prev = response.prev
        if self._sent_after != prev or conflict >= prev:
            mark("stale_refusal")
            return
        common = conflict if shape.contains(conflict) else shape.floor(conflict.epoch)
        if common >= prev:
            mark("refusal_that_leads_nowhere")
            return
        self.next = self.held.refuse(response, common, shape.last)
        self._forget_in_flight()
        self.is_probing = self.must_probe = True
        self.answers += 1

    def _forget_in_flight(self) -> None:
        self._in_flight.clear()
        self.bytes_in_flight = 0
