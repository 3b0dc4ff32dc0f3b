"""Consumers of the classic protocol that know only what they were answered, as real ones do."""

from tests.partitions.state_machines.groups.driver import Coordinator, Waiter
from tidemark.client.assignment import ASSIGNORS
from tidemark.partitions.state_machines.groups.requests import JoinAnswer, SyncAnswer
from tidemark.partitions.state_machines.groups.topic_view import Partitions, TopicIdPartition
from tidemark.protocol.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition

EAGER, COOPERATIVE = "range", "cooperative-sticky"
SESSION_MS = 10_000
_LOST = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
)


class ClassicMember:
    """One client. `owned` is what it reads, by what it was told; an eager one gives all up before
    it joins, a cooperative one what it is not given again, and then it joins once more."""

    def __init__(
        self,
        coordinator: Coordinator,
        name: str,
        *,
        assignor: str = EAGER,
        instance_id: str | None = None,
        reads: tuple[str, ...] = ("orders",),
    ) -> None:
        self.coordinator = coordinator
        self.name, self.id, self.instance_id = name, "", instance_id
        self.assignor, self.reads = assignor, reads
        self.generation = -1
        self.owned: Partitions = frozenset()
        self.error = ErrorCode.NONE
        self.has_to_join = True
        # A leader watches the topics that it has assigned.
        self._assigned_topics: object = None
        self._joins = 0
        self._joining: Waiter | None = None
        self._syncing: Waiter | None = None

    def turn(self) -> None:
        """Do the next thing that a client does, and take in what has been answered."""
        self.take()
        if self._joining is not None or self._syncing is not None:
            return
        if self.has_to_join or self._sees_other_topics():
            self.send_join()
        else:
            self.beat()
        self.take()

    def send_join(self) -> None:
        if self.assignor == EAGER:
            self.owned = frozenset()
        said = Subscription(
            topics=self.reads, owned=self._named(self.owned), generation=self.generation
        )
        self._joins += 1
        self._joining = self.coordinator.join(
            self.id,
            name=self.name if self._joins == 1 else f"{self.name} ({self._joins})",
            instance_id=self.instance_id,
            protocols=((self.assignor, encode_subscription(said)),),
            session_ms=SESSION_MS,
        )

    def beat(self) -> ErrorCode:
        error = self.coordinator.heartbeat(self.id, self.generation, instance_id=self.instance_id)
        self._note(error)
        return error

    def take(self) -> None:
        answers = self.coordinator.answers
        if self._joining in answers:
            joined = self.coordinator.joined(self._joining)
            self._joining = None
            self._take_joined(joined)
        if self._syncing in answers:
            synced = self.coordinator.synced(self._syncing)
            self._syncing = None
            self._take_synced(synced)

    def leave(self) -> list[ErrorCode]:
        self.owned = frozenset()
        return self.coordinator.leave(self.id)

    def _take_joined(self, answer: JoinAnswer) -> None:
        self._note(answer.error)
        if answer.error is not ErrorCode.NONE:
            return
        self.id, self.generation = answer.member_id, answer.generation
        leads = answer.leader == self.id
        self._assigned_topics = self.coordinator.topics.topics if leads else None
        parts = self._assign(answer) if leads else {}
        self._syncing = self.coordinator.sync(
            self.id,
            self.generation,
            parts,
            instance_id=self.instance_id,
            protocol_type=answer.protocol_type,
            protocol=answer.protocol,
        )
        self.take()

    def _take_synced(self, answer: SyncAnswer) -> None:
        self._note(answer.error)
        if answer.error is not ErrorCode.NONE:
            return
        given = self._with_ids(decode_assignment(answer.assignment))
        lets_go = self.owned - given
        self.owned = given
        self.has_to_join = bool(lets_go)

    def _note(self, error: ErrorCode) -> None:
        self.error = error
        if error in _LOST:
            self.owned, self.generation = frozenset(), -1
            if error is not ErrorCode.ILLEGAL_GENERATION:
                self.id = ""
        if error is not ErrorCode.NONE:
            self.has_to_join = True

    def _sees_other_topics(self) -> bool:
        return self._assigned_topics not in (None, self.coordinator.topics.topics)

    def _assign(self, answer: JoinAnswer) -> dict[str, bytes]:
        """What a leader does: the members' metadata in, everybody's part out."""
        said = {m.member_id: decode_subscription(m.metadata) for m in answer.members}
        topics = self.coordinator.topics.topics
        counts = {name: facts.partitions for name, facts in topics.items()}
        parts = ASSIGNORS[self.assignor].assign(said, counts)
        return {member_id: encode_assignment(part) for member_id, part in parts.items()}

    def _with_ids(self, partitions: tuple[TopicPartition, ...]) -> Partitions:
        topics = self.coordinator.topics.topics
        return frozenset(
            TopicIdPartition(topics[each.topic].id, each.partition)
            for each in partitions
            if each.topic in topics
        )

    def _named(self, partitions: Partitions) -> frozenset[TopicPartition]:
        names = {facts.id: name for name, facts in self.coordinator.topics.topics.items()}
        return frozenset(
            TopicPartition(names[each.topic_id], each.partition)
            for each in partitions
            if each.topic_id in names
        )
