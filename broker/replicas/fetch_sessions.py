"""Fetch sessions (KIP-227): a reader says once what it reads, then both sides say what is new.

A reader of a thousand partitions that are mostly still would else send a thousand entries and get a
thousand back, over and over. In a session the broker remembers what is read and what it said last;
a request names what has changed, and so does its answer. Each request of a session carries a number
one larger than the one before: what is out of step is refused, and the reader begins anew.

A session belongs to no connection, and is forgotten rather than closed. There are at most as many
as there are slots, and `PARTITIONS_MAX` partitions in all of them. Where there is no room the
reader gets none, and goes on saying everything each time. Room is made by whoever has been silent
for `IDLE_SECONDS`, or is older than that and smaller than who asks. Pure: the time is an argument.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from random import Random, SystemRandom
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from tidemark.partitions.state_machines.topic_names import NAME_LENGTH_MAX
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from tidemark.protocol.values import dataclass

IDLE_SECONDS: Final = 120.0
"""For so long nobody is pushed out, however small and however still."""
PARTITIONS_MAX: Final = 200_000
"""In all sessions together: what they remember takes memory, some 300 bytes for each. A name of
32 kB would take a hundred times that; it is no topic's, and who asks for one has no session."""
FIRST_EPOCH: Final = 0
"""The number of a request that opens a session."""
NO_SESSION: Final = -1
"""The number of a request outside of any, also of one that closes its session."""
_EPOCH_MAX: Final = 2**31 - 1
_LOOK_AGAIN_SECONDS: Final = 1.0

TopicKey: TypeAlias = UUID | str


Asked: TypeAlias = tuple[str, UUID, FetchPartition]
"""One partition that is to be read; the topic is known by name or by id, as the client said."""


class Ends(NamedTuple):
    """What every answer says of a partition, also of one that has nothing else to say."""

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


@dataclass(slots=True)
class Remembered:
    """One partition of a session."""

    asked: Asked
    told: Ends | None = None
    """What its reader was told last, unless that was an error."""


class FetchSession:
    """What one reader reads."""

    def __init__(self, number: int, *, uses_ids: bool, now: float) -> None:
        self.id = number
        self.uses_ids = uses_ids
        self.epoch = FIRST_EPOCH + 1
        """What the next request has to say."""
        self.opened_at = self.used_at = now
        self._partitions: dict[tuple[TopicKey, int], Remembered] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def remembered(self) -> list[Remembered]:
        return list(self._partitions.values())

    def take(self, request: FetchRequest) -> None:
        """What is to be read from now on: what the request names is new, or read elsewhere."""
        for asked in everything(request.topics):
            topic, topic_id, partition = asked
            topic_key: TopicKey = topic_id if self.uses_ids else topic
            key = (topic_key, partition.partition)
            remembered = self._partitions.get(key)
            if remembered is None:
                self._partitions[key] = Remembered(asked)
            else:
                remembered.asked = asked
        for forgotten in request.forgotten_topics_data:
            for number in forgotten.partitions:
                self._partitions.pop((self._key(forgotten), number), None)

    def go_on(self, now: float) -> None:
        self.used_at = now
        self.epoch = FIRST_EPOCH + 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    def news(
        self, topics: Sequence[FetchableTopicResponse]
    ) -> Iterator[tuple[FetchableTopicResponse, PartitionData]]:
        """The answers of which the reader has to hear; from then on it is taken to know them."""
        for topic in topics:
            for answer in topic.partitions:
                if self._note_told(self._key(topic), answer):
                    yield topic, answer

    def _note_told(self, topic: TopicKey, answer: PartitionData) -> bool:
        """The reader knows this from now on; whether it did not before."""
        remembered = self._partitions.get((topic, answer.partition_index))
        if remembered is None:
            return True
        if answer.error_code != ErrorCode.NONE:
            remembered.told = None  # that it is over will be news
            return True
        told = Ends(answer.high_watermark, answer.last_stable_offset, answer.log_start_offset)
        is_new = (
            told != remembered.told or bool(answer.records) or answer.preferred_read_replica >= 0
        )
        remembered.told = told
        return is_new

    def _key(self, topic: FetchTopic | FetchableTopicResponse | ForgottenTopic) -> TopicKey:
        return topic.topic_id if self.uses_ids else topic.topic


class FetchSessions:
    """The sessions of a broker's readers."""

    def __init__(
        self, slots: int, *, partitions_max: int = PARTITIONS_MAX, rng: Random | None = None
    ) -> None:
        self._slots = slots
        self._partitions_max = partitions_max
        self._rng = rng or SystemRandom()  # a number that could be guessed could be used by others
        # Who was used longest ago comes first.
        self._sessions: dict[int, FetchSession] = {}
        self._full_until = 0.0
        self.partitions = 0
        """How many are remembered in all."""
        self.evicted = 0
        """How many sessions had to make room."""

    def __len__(self) -> int:
        return len(self._sessions)

    def enter(self, request: FetchRequest, *, uses_ids: bool, now: float) -> FetchSession | None:
        """The session that the request goes on with; `None` if it says in full what it wants.

        Raises `RequestError` for one that is not known, or is out of step.
        """
        if request.session_epoch in (NO_SESSION, FIRST_EPOCH):
            self._forget(request.session_id)
            return None
        session = self._sessions.get(request.session_id)
        if session is None:
            raise RequestError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                f"there is no fetch session {request.session_id}: open one",
            )
        if session.epoch != request.session_epoch:
            raise RequestError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session.id} is at {session.epoch}, not {request.session_epoch}: "
                "open another",
            )
        if session.uses_ids is not uses_ids:
            raise RequestError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                "a session knows its topics by name or by id, and not by both: open another",
            )
        if not _are_names(request.topics):
            self._forget(session.id)
            raise RequestError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                f"names of more than {NAME_LENGTH_MAX} characters are not remembered: no topic has "
                "one",
            )
        before = len(session)
        session.take(request)
        self.partitions += len(session) - before
        session.go_on(now)
        if len(session) == 0 or self.partitions > self._partitions_max:
            self._forget(session.id)
        else:
            self._sessions[session.id] = self._sessions.pop(session.id)
        return session

    def answer(
        self,
        request: FetchRequest,
        response: FetchResponse,
        session: FetchSession | None,
        *,
        uses_ids: bool,
        now: float,
    ) -> FetchResponse:
        """What is said of a full `response` to a request with a session, or that opens one: in a
        session only what is new in it."""
        if session is None:
            return self._open(request, response, uses_ids=uses_ids, now=now)
        number = session.id if session.id in self._sessions else 0
        return replace(
            response, session_id=number, responses=_grouped(session.news(response.responses))
        )

    def _open(
        self, request: FetchRequest, response: FetchResponse, *, uses_ids: bool, now: float
    ) -> FetchResponse:
        if not _are_names(request.topics):
            return response
        session = FetchSession(self._free_number(), uses_ids=uses_ids, now=now)
        session.take(request)
        if len(session) == 0 or not self._make_room(len(session), now):
            return response
        self._sessions[session.id] = session
        self.partitions += len(session)
        for _ in session.news(response.responses):
            pass  # All of it is said.
        return replace(response, session_id=session.id)

    def _free_number(self) -> int:
        while True:
            number = self._rng.randrange(1, _EPOCH_MAX)
            if number not in self._sessions:
                return number

    def _make_room(self, size: int, now: float) -> bool:
        """Have others make room for another session, if they have to; whether it may be opened."""
        if self._slots == 0 or size > self._partitions_max:
            return False
        while len(self._sessions) >= self._slots or self.partitions + size > self._partitions_max:
            evicted = self._to_evict(size, now)
            if evicted is None:
                return False
            self.evicted += 1
            self._forget(evicted.id)
        return True

    def _to_evict(self, size: int, now: float) -> FetchSession | None:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now - oldest.used_at > IDLE_SECONDS:
            return oldest
        if now < self._full_until:
            return None
        old = (each for each in self._sessions.values() if now - each.opened_at > IDLE_SECONDS)
        smallest = min(old, key=len, default=None)
        if smallest is None or len(smallest) >= size:
            # Who got none asks for one with each fetch: all are not looked through each time.
            self._full_until = now + _LOOK_AGAIN_SECONDS
            return None
        return smallest

    def _forget(self, number: int) -> None:
        session = self._sessions.pop(number, None)
        if session is not None:
            self.partitions -= len(session)


def everything(topics: Iterable[FetchTopic]) -> list[Asked]:
    """The partitions of a request, in its order."""
    return [
        (topic.topic, topic.topic_id, partition)
        for topic in topics
        for partition in topic.partitions
    ]


def _are_names(topics: Iterable[FetchTopic]) -> bool:
    """Whether all that is named could be."""
    return all(len(topic.topic) <= NAME_LENGTH_MAX for topic in topics)


def _grouped(
    news: Iterable[tuple[FetchableTopicResponse, PartitionData]],
) -> list[FetchableTopicResponse]:
    topics = (list(answers) for _, answers in groupby(news, key=lambda each: id(each[0])))
    return [replace(each[0][0], partitions=[answer for _, answer in each]) for each in topics]
