"""The topics of the cluster, and how more are made: many at a time, or one at its first use."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.metadata.controller import Controller
from tidemark.broker.metadata.hosting import Hosting
from tidemark.broker.metadata.metadata_leader import WAIT_SECONDS_MIN
from tidemark.broker.metadata.rounds import in_rounds
from tidemark.broker.metadata.shown_topics import Cluster, ShownTopics
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.broker.metadata.topic_creation import Placing, creation, metadata_of
from tidemark.broker.replicas.opening import LEADER_SECONDS_MAX
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.state_machines.cluster import C, ClusterState, decided_on
from tidemark.partitions.state_machines.cluster_commands import CreateTopic
from tidemark.partitions.state_machines.cluster_values import Assignment, TopicMetadata
from tidemark.partitions.state_machines.placement import Load
from tidemark.partitions.state_machines.topic_names import INTERNAL_TOPICS, check_topic_name
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError


class MadeTopics(ShownTopics):
    """All topics; what is not there yet can be asked for. Raises as `Topics` says."""

    def __init__(
        self,
        settings: BrokerSettings,
        services: ReplicaServices,
        cluster: Cluster,
        hosting: Hosting,
        placing: Placing,
        controller: Controller,
    ) -> None:
        super().__init__(settings, services, cluster, hosting)
        self._placing = placing
        self._controller = controller

    def check_name(self, name: str) -> None:
        """Raises `RequestError` INVALID_TOPIC_EXCEPTION for a name no topic can have (trap M3)."""
        check_topic_name(name)

    async def create(self, wanted: NewTopic, *, validate_only: bool = False) -> Topic:
        """Make a topic, or with `validate_only` say what it would be like."""
        (made,) = await self.create_all([wanted], validate_only=validate_only)
        if isinstance(made, RequestError):
            raise made
        return made

    async def create_all(
        self,
        wanted: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        deadline: float = math.inf,
    ) -> list[Topic | RequestError]:
        """Make topics, many at a time; for each, in this order, what it is like, or why not.

        By the deadline, on trio's clock: what has not been begun by then is not made.
        """
        in_the_way = await self._names_in_the_way(wanted)
        decisions = [partial(self._creation, each, in_the_way) for each in wanted]
        if validate_only:
            return [
                each if isinstance(each, RequestError) else self._topic_of(metadata_of(each))
                for each in await self._drafted(decisions)
            ]
        return await self._make(decisions, deadline)

    async def _drafted(
        self, decisions: Sequence[Callable[[ClusterState], C]]
    ) -> list[C | RequestError]:
        """What would come of them, on the state as it is now. Nothing is changed."""
        draft, drafted = self._cluster.state.draft(), list[C | RequestError]()
        for decide in decisions:
            drafted.append(decided_on(draft, decide))
            # Each may have thousands of partitions to be placed.
            await trio.lowlevel.checkpoint()
        return drafted

    def _creation(
        self, wanted: NewTopic, in_the_way: Collection[str], state: ClusterState
    ) -> CreateTopic:
        now_ms = self._services.clock.now_ms()
        command = creation(wanted, self._settings, state, self._placing, now_ms=now_ms)
        if wanted.name not in INTERNAL_TOPICS:
            self._check_room(command.assignments, state.load)
        self._topic_of(metadata_of(command))
        # It may have been made meanwhile, and then that is what there is to say.
        if wanted.name in in_the_way and state.topic(wanted.name) is None:
            with self._refusals():
                raise StorageError(
                    f"{self._services.directory.path} has a directory of a topic {wanted.name} "
                    "that this broker does not know: move it away"
                )
        return command

    def _topic_of(self, metadata: TopicMetadata) -> Topic:
        """Raises `RequestError` for configs that do not go with this broker's."""
        return Topic.of(metadata, self._defaults.values)

    async def _propose_topics(
        self, decisions: Sequence[Callable[[ClusterState], C]]
    ) -> list[TopicMetadata | RequestError]:
        with self._refusals():
            return await self._cluster.propose_topics(decisions)

    async def _make(
        self, decisions: Sequence[Callable[[ClusterState], C]], deadline: float
    ) -> list[Topic | RequestError]:
        """Topics, or more partitions of them; for each, in this order, what it is like, or why not.

        Waits for some time until all are led; no longer than the deadline, for they are made.
        """
        made = await in_rounds(decisions, self._propose_topics, self._settled, deadline=deadline)
        topics = [
            each if isinstance(each, RequestError) else self.by_id(each.id) or self._topic_of(each)
            for each in made
        ]
        with trio.move_on_at(deadline):
            await self._wait_leaders([each for each in topics if isinstance(each, Topic)])
        return topics

    async def _settled(
        self, changed: list[TopicMetadata | RequestError]
    ) -> list[TopicMetadata | RequestError]:
        """The same, once what is to be here is open, and what is not is closed; or why not."""
        settled = list(changed)
        for at, each in enumerate(changed):
            if not isinstance(each, RequestError):
                try:
                    await self._hosting.wait_settled(each.id)
                except RequestError as error:
                    settled[at] = error
        return settled

    async def ensure(self, wanted: NewTopic) -> Topic:
        """The topic of that name, made if it is not there: creation by first use (trap M2).

        Made by the broker that leads the metadata, it is as that one's settings say. Raises
        `RequestError` LEADER_NOT_AVAILABLE, on which every client asks again, while nobody leads.
        """
        topic = self._topics.get(wanted.name)
        if topic is not None:
            return topic
        try:
            if self._controller.is_here:
                return await self._create_in_time(wanted)
            await self._controller.create_topic(wanted.name)
        except RequestError as error:
            if error.code in (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT):
                raise RequestError(ErrorCode.LEADER_NOT_AVAILABLE, error.message) from error
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        topic = self._topics.get(wanted.name)
        if topic is None:
            raise RequestError(ErrorCode.LEADER_NOT_AVAILABLE, f"{wanted.name} is being made")
        await self._hosting.wait_settled(topic.id)
        await self._wait_leaders([topic])
        return self._topics.get(wanted.name) or topic

    async def _create_in_time(self, wanted: NewTopic) -> Topic:
        """`create`, but who is cut off from the majority is not waited for until it is back."""
        with trio.move_on_after(WAIT_SECONDS_MIN):
            return await self.create(wanted)
        raise RequestError(
            ErrorCode.REQUEST_TIMED_OUT, f"a majority has not heard of {wanted.name} in time"
        )

    async def _wait_leaders(self, topics: Iterable[Topic]) -> None:
        """Give the partitions of new topics the time to elect their leaders."""
        missing = [(topic, number) for topic in topics for number in range(topic.partition_count)]
        with trio.move_on_after(LEADER_SECONDS_MAX):
            while missing:
                # One at a time: to look at all of thousands after each election takes minutes.
                if self._is_led(*missing[-1]):
                    missing.pop()
                else:
                    await self._services.driver.wait_changed()

    def _is_led(self, topic: Topic, partition: int) -> bool:
        """Whether it is known who leads it, and this broker serves it if it is the one."""
        leader, _ = self._leader_of(PartitionKey(topic.id, partition))
        if leader != self._services.node_id:
            return leader is not None
        here = self._hosting.by_partition(topic.id).get(partition)
        return here is None or here.is_serving or not here.is_available

    async def ensure_own(self, name: str) -> Topic:
        """The topic that a coordinator of this cluster keeps its state in.

        Raises `RequestError` COORDINATOR_NOT_AVAILABLE, on which clients ask again.
        """
        try:
            return await self.ensure(NewTopic(name=name))
        except RequestError as error:
            if error.code is not ErrorCode.LEADER_NOT_AVAILABLE:
                raise
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from error

    def _check_room(self, added: Sequence[Assignment], load: Load) -> None:
        """Raises `RequestError` POLICY_VIOLATION if that is too much for some broker."""
        partitions_max = self._settings.partitions_max
        # That they are for somebody at all is looked at later.
        replicas = Counter(node for assignment in added for node in assignment)
        for node, count in replicas.items():
            if load.replicas[node] + count > partitions_max:
                raise RequestError(
                    ErrorCode.POLICY_VIOLATION,
                    f"broker {node} holds {load.replicas[node]} partitions, and {count} more would "
                    f"be over partitions.max, {partitions_max}: raise it, delete topics, or add "
                    "brokers",
                )

    async def _names_in_the_way(self, wanted: Iterable[NewTopic]) -> Collection[str]:
        """Those of which there is a directory that no topic has: it may hold somebody's records."""
        known = {each.name for each in wanted if self._may_have_files(each.name)}
        with self._refusals():
            there = await run_in_thread(self._services.directory.partitions)
        names = {each.topic for each in there} - known
        return {name for name in names if not self._may_have_files(name)}

    def _may_have_files(self, name: str) -> bool:
        return name in self._topics or self._hosting.is_removing(name)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What the disk does not take is an answer, too."""
        try:
            yield
        except (OSError, StorageError) as error:
            self._services.storage_failed(f"topics: {error}")
            raise RequestError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
