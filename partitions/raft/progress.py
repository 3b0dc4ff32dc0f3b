"""What a leader knows about one follower, and what is in flight to it."""

from __future__ import annotations

from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.marks import mark
from tidemark.partitions.raft.messages import AppendResponse
from tidemark.partitions.raft.replica import NEVER, NOWHERE
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

    @property
    def end_offset(self) -> Offset:
        """Up to where it holds the log; `NO_OFFSET` if it has not said anything to this leader."""
        return NO_OFFSET if self.match == NOWHERE else self.match.offset


class Progress:
    """One follower. Requests go out without waiting for answers, within a window of bytes.

    The follower takes them in order, so an answer to one answers all before it. Only a refusal of
    the first in flight says anything: the later ones may have overtaken it.

    Invariant: `match <= next`.
    """

    __slots__ = (
        "_clean_life",
        "_doubtful_life",
        "_in_flight",
        "_is_asked",
        "_is_clean_at_told",
        "_match_life",
        "allowance",
        "answers",
        "bytes_in_flight",
        "bytes_sent",
        "clean_at",
        "doubted_at",
        "has_come",
        "is_probing",
        "life",
        "match",
        "must_probe",
        "next",
    )

    def __init__(self, after: Position) -> None:
        """Nothing is known of the follower; `after` is where its log may end."""
        self.match = NOWHERE
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
        # An unclean follower does not count before it holds this.
        self.clean_at: Position | None = None
        # The latest that has answered, the latest that was in doubt, and the latest that was clean.
        self.life = self._doubtful_life = self._clean_life = 0
        self._match_life = 0  # in which it has said that it holds `match`
        # Where the log ended when its doubt was heard of. `None` once something newer is committed:
        # from then on it counts as one that is unclean does.
        self.doubted_at: Position | None = None
        self._is_clean_at_told = True
        # It was not clean, and may have crashed again since: first it says in which life it is.
        self._is_asked = False
        self._in_flight: list[tuple[Position, Position, int]] = []  # prev, end, bytes

    @property
    def counted(self) -> Position:
        """What this follower stands for when a majority is looked for."""
        clean_at = self.clean_at
        return self.match if clean_at is None or self.match >= clean_at else NOWHERE

    @property
    def is_steady(self) -> bool:
        """Whether it takes what is appended, and nothing else has to be told to it."""
        return (
            not self.is_probing
            and not self.must_probe
            and self._is_clean_at_told
            and self.clean_at is None
            and self.allowance is None
        )

    @property
    def is_to_be_asked(self) -> bool:
        """Whether it has come in the middle of an epoch, and nothing is known of its log."""
        return self.has_come and self.match == NOWHERE

    @property
    def has_in_flight(self) -> bool:
        return bool(self._in_flight)

    def may_send(self, window_bytes: int) -> bool:
        if self.is_probing:
            return not self._in_flight
        return self.bytes_in_flight < window_bytes

    def wants(self, last: Position) -> bool:
        """Whether there is something to be sent to it, now or when the window opens."""
        if self.allowance is not None and self.allowance <= 0:
            return False
        return self.next != last or self.must_probe or not self._is_clean_at_told

    def run_bytes_max(self, bytes_max: int) -> int:
        """How much to send at once; it is more where a single batch is."""
        return bytes_max if self.allowance is None else min(self.allowance, bytes_max)

    def sent(self, end: Position, size_bytes: int, *, is_clean_at_told: bool = True) -> None:
        """Entries from `next` to `end` are under way."""
        self._in_flight.append((self.next, end, size_bytes))
        self.bytes_in_flight += size_bytes
        self.bytes_sent += size_bytes
        if self.allowance is not None:
            self.allowance -= size_bytes
        self.next = end
        self.must_probe = False
        if is_clean_at_told and not self._is_asked:
            self._is_clean_at_told = True

    def allow(self, more_bytes: int | None) -> None:
        """It may be sent so much more, or anything. What was not used before is not added."""
        if more_bytes is None:
            self.allowance = None
        else:
            self.allowance = min((self.allowance or 0) + more_bytes, more_bytes)

    def restart(self) -> None:
        """Forget what is in flight; begin again at what is known, with one request.

        Of one that is not clean it is not known whether it has crashed again, and lost more: it
        does not count, and is not told when it will be clean, before it has said in which life it
        is. If it is the same one, it has lost nothing: it may have become clean, and its word for
        that may be what was lost.
        """
        if self.match != NOWHERE:
            self.next = self.match
        elif self._in_flight:
            self.next = self._in_flight[0][0]
        self._forget_in_flight()
        self.is_probing = self.must_probe = True
        if self.clean_at is not None:
            self.match = NOWHERE
            self._is_asked, self._is_clean_at_told = True, False

    def note_clean(self, response: AppendResponse, last: Position) -> bool:
        """A follower that may have lost what it acknowledged begins to count anew.

        Returns whether the answer is worth anything: one from before the loss is not.

        Once it has all that this leader has by now, it has all that it can have acknowledged to it:
        an acknowledgement of something later cannot have been given before the loss.
        """
        was_asked = has_crashed = False
        if response.life:  # 0 in an answer by the short way, which is always of this life
            if response.life < self.life:
                mark("answer_of_an_earlier_life")
                return False
            has_crashed = self.life < response.life
            self.life = response.life
            if self._is_outdated(response):
                mark("answer_from_before_it_was_clean")
                return False
            was_asked, self._is_asked = self._is_asked, False
            if response.in_doubt:
                self._note_doubt(last)
                return True
            self._forget_doubt()  # it was ended by this leader, in an earlier epoch
        if not response.is_clean:
            if self.clean_at is None or has_crashed:
                mark("follower_unclean")
                self._begin_anew(last)
        elif self.clean_at is not None:
            if response.match is not None and response.match >= self.clean_at:
                self._count_again()
            elif not was_asked:
                mark("answer_from_before_the_loss")
                return False
        if response.is_clean and response.life:
            self._clean_life = response.life
        return True

    def _is_outdated(self, response: AppendResponse) -> bool:
        """Whether a follower that is clean said this, that it is not, before it was.

        A power loss ends a life. Who has left and come back has the same one, but then it is what
        is in flight now that it answers so. To believe an old word of it would make it unclean
        again, and nobody would be left to elect another leader if this one went then.
        """
        if response.is_clean or self.clean_at is not None or response.life != self._clean_life:
            return False
        return not self._in_flight or self._in_flight[0][0] != response.prev

    def _note_doubt(self, last: Position) -> None:
        if self._doubtful_life < self.life:
            self.begin_doubt(self.life, last)
        elif self.clean_at is None:  # it has not heard yet, or not recorded, that its doubt ended
            self._begin_anew(last)

    def _forget_doubt(self) -> None:
        if self.doubted_at is not None:
            self.doubted_at = None
            self._count_again()

    def _count_again(self) -> None:
        self.clean_at, self._is_asked, self._is_clean_at_told = None, False, True

    @property
    def is_doubtful(self) -> bool:
        """Whether it is in doubt, or has not said yet that it is no more."""
        return self.clean_at is not None and self._doubtful_life == self.life != 0

    @property
    def clean_at_to_tell(self) -> tuple[Position | None, int]:
        """What the follower has to know to be clean, and in which life that ends its doubt."""
        is_known = self.clean_at is not None and self.doubted_at is None and not self._is_asked
        return (self.clean_at, self._doubtful_life) if is_known else (None, 0)

    def begin_doubt(self, life: int, last: Position) -> None:
        """It may have forgotten what it promised; nothing up to `last` is new enough to end it."""
        mark("follower_in_doubt")
        self.life = self._doubtful_life = life
        self.doubted_at = last
        self.clean_at, self.match = NEVER, NOWHERE

    def end_doubt(self, committed: Position) -> None:
        """Something newer is committed; it counts once it holds that."""
        self.doubted_at, self.clean_at = None, committed
        self._is_clean_at_told = False

    def succeeded(self, prev: Position, match: Position) -> bool:
        """The follower holds up to `match` durably. Returns whether that is news."""
        in_flight = self._in_flight
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
        is_news = match > self.match
        if is_news:
            self.match, self._match_life = match, self.life
        if self.next < self.match:  # acknowledged before what is in flight was forgotten
            self.next = self.match
        if is_news or done:
            self.is_probing = False
            self.answers += 1
        return is_news

    def refused(self, response: AppendResponse, conflict: Position, shape: LogShape) -> None:
        """The logs part before the request's `prev`: try again, from an earlier place."""
        prev = response.prev
        if not self._in_flight or self._in_flight[0][0] != prev or conflict >= prev:
            mark("stale_refusal")
            return
        common = conflict if shape.contains(conflict) else shape.floor(conflict.epoch)
        if common >= prev:
            mark("refusal_that_leads_nowhere")
            return
        if not response.is_clean:  # it has lost what it acknowledged, or has lost more
            self._begin_anew(shape.last)
        if common < self.match:
            if self._match_life < self.life:
                # It is another process, which knows nothing of what its last one acknowledged:
                # its files are an older copy, for example. It says itself that it is clean.
                mark("follower_forgot")
                self._begin_anew(shape.last)
            else:
                mark("refusal_below_match")
                common = self.match
        self._forget_in_flight()
        self.next = common
        self.is_probing = self.must_probe = True
        self.answers += 1

    def _begin_anew(self, last: Position) -> None:
        self.match = NOWHERE
        if self.doubted_at is None:
            self.clean_at, self._is_clean_at_told = last, False

    def _forget_in_flight(self) -> None:
        self._in_flight.clear()
        self.bytes_in_flight = 0
