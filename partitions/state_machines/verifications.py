"""Which producers a leader has asked about: is their transaction open, and this partition in it?

A request may be on its way for minutes, and arrive when its transaction is over. So before the
first batch of a transaction is appended, its coordinator is asked. What it says is true until the
transaction ends, and an end tells every partition that is in it, by a marker. Hence the rule: a
marker makes all that was asked before worth nothing, an answer that is still on its way included.
Once a batch is in the log, the log says that the transaction is open, and this is forgotten.

It holds for one leader, in one epoch: no other knows which markers came before.
"""

from typing import Final

from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import ProducerId

QUESTIONS_MAX: Final = 1_000
"""The oldest gives way; whoever needs its answer asks again."""


class Question:
    """Whether a producer's transaction is open here."""

    __slots__ = ("epoch", "error", "is_settled", "producer_id")

    def __init__(self, producer_id: ProducerId, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.is_settled = False
        self.error: RequestError | None = None
        """Why not, once that is known."""

    def settle(self, error: RequestError | None) -> None:
        self.is_settled, self.error = True, error


class Verifications:
    """Of one partition.

    A producer's epochs are asked about apart: requests of an old one, held up on their way, may
    wait beside those of the new one. Could they displace each other's question, neither would ever
    find its answer.
    """

    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked: dict[tuple[ProducerId, int], Question] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def find(self, producer_id: ProducerId, epoch: int) -> Question | None:
        """What was asked, if no marker has come since."""
        return self._asked.get((producer_id, epoch))

    def begin(self, producer_id: ProducerId, epoch: int) -> Question:
        """To be called before the coordinator is asked."""
        self._asked.pop((producer_id, epoch), None)
        if len(self._asked) >= QUESTIONS_MAX:
            del self._asked[next(iter(self._asked))]
        question = self._asked[producer_id, epoch] = Question(producer_id, epoch)
        return question

    def pass_on(self, refusal: Question) -> None:
        """A refusal is told to the client that asked, and forgotten: the next one asks anew."""
        self._asked.pop((refusal.producer_id, refusal.epoch), None)

    def forget(self, producer_id: ProducerId) -> None:
        """A marker has come, or a batch is in the log."""
        for key in [key for key in self._asked if key[0] == producer_id]:
            del self._asked[key]
