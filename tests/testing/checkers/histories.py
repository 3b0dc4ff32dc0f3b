"""Short ways to write down a history."""

from itertools import count

from tidemark.protocol.types import Epoch, Offset, TopicPartition
from tidemark.testing.checkers.history import (
    History,
    Outcome,
    Poll,
    Polled,
    Send,
    Value,
    Watermark,
)

PARTITION = TopicPartition("words", 0)


class Story:
    """A history in which each step takes a second, unless told otherwise."""

    def __init__(self) -> None:
        self.history = History()
        self._times = count()

    def sent(
        self,
        client: str,
        *values: Value,
        at: list[int] | None = None,
        outcome: Outcome = Outcome.OK,
        key: str | None = None,
        started: float | None = None,
        ended: float | None = None,
    ) -> "Story":
        now = next(self._times)
        self.history.sends.append(
            Send(
                client=client,
                partition=PARTITION,
                values=values,
                key=key,
                started=now if started is None else started,
                ended=now + 0.5 if ended is None else ended,
                outcome=outcome,
                offsets=tuple(map(Offset, at or ())),
            )
        )
        return self

    def failed(self, client: str, value: Value) -> "Story":
        return self.sent(client, value, outcome=Outcome.FAIL)

    def timed_out(self, client: str, value: Value, *, key: str | None = None) -> "Story":
        return self.sent(client, value, outcome=Outcome.INFO, key=key)

    def polled(self, client: str, *records: tuple[int, Value], sought: bool = False) -> "Story":
        now = next(self._times)
        self.history.polls.append(
            Poll(
                client=client,
                started=now,
                ended=now + 0.5,
                records=tuple(Polled(PARTITION, Offset(o), v) for o, v in records),
                is_repositioned=sought,
            )
        )
        return self

    def told(self, offset: int, *, epoch: int) -> "Story":
        now = next(self._times)
        self.history.watermarks.append(
            Watermark(
                partition=PARTITION,
                epoch=Epoch(epoch),
                offset=Offset(offset),
                started=now,
                ended=now + 0.5,
            )
        )
        return self
