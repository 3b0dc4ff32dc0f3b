"""Records that were acknowledged, number n at time n, and of which the last reader got some."""

from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers import History, Outcome, Poll, Polled, Send

AT = TopicPartition("t", 0)


def history(*, sent: int, read: int) -> History:
    sends = [
        Send(
            client="p0",
            partition=AT,
            values=(f"p0-{number}",),
            started=float(number),
            ended=number + 0.1,
            outcome=Outcome.OK,
            offsets=(Offset(number),),
        )
        for number in range(sent)
    ]
    records = tuple(Polled(AT, Offset(number), f"p0-{number}") for number in range(read))
    return History(
        sends=sends, polls=[Poll(client="final", started=90.0, ended=91.0, records=records)]
    )
