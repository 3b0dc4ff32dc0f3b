"""What the cluster knows of itself: its id, its brokers, its topics, which producer ids are given.

The state is a function of the commands applied to it, in order; every node that applies the same
commands holds the same state. What a partition's leader is, and where its log ends, is not here:
that changes without anybody deciding it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Final, TypeVar, assert_never
from uuid import UUID

from tidemark.partitions.state_machines.access.table import AclTable
from tidemark.partitions.state_machines.access.users import UserTable
from tidemark.partitions.state_machines.broker_configs import BrokerConfigs
from tidemark.partitions.state_machines.client_quotas import ClientQuotas
from tidemark.partitions.state_machines.cluster_brokers import (
    check_registration,
    check_removal,
    no_broker,
)
from tidemark.partitions.state_machines.cluster_commands import (
    AllocateProducerIds,
    AlterAcls,
    AlterQuotas,
    AlterUsers,
    Command,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    EndMoves,
    FinishReassignments,
    FoundCluster,
    MoveLeaders,
    ProducerIdBlock,
    ReassignPartitions,
    RegisterBroker,
    SetBrokerConfigs,
    SetBrokerState,
    SetGroupConfigs,
    SetObservers,
    SetTopicConfigs,
    UnregisterBroker,
)
from tidemark.partitions.state_machines.cluster_reassignments import (
    by_topic,
    finished,
    reassigned,
)
from tidemark.partitions.state_machines.cluster_topics import ClusterTopics
from tidemark.partitions.state_machines.cluster_values import (
    BrokerMetadata,
    Reassignment,
    TopicMetadata,
    broker_body,
    from_plain,
    topic_body,
)
from tidemark.partitions.state_machines.cluster_wishes import (
    Wishes,
    checked_observers,
)
from tidemark.partitions.state_machines.config_table import parse_all
from tidemark.partitions.state_machines.group_configs import GROUP_SETTINGS
from tidemark.partitions.state_machines.placement import Load
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.types import NodeId, ProducerId

_SNAPSHOT_FORMAT: Final = 7
_SNAPSHOT_FORMATS: Final = (2, 3, 4, 5, 6, 7)
"""Those that can be read. Format 2 had no wishes, 3 no quotas and no configs of brokers, 4 none of
groups, 5 no ACLs, 6 no users."""
_FORMAT_WITHOUT_ACLS: Final = 5
_FORMAT_WITH_ACLS: Final = 6
_FORMAT_WITH_USERS: Final = 7


Applied = TopicMetadata | BrokerMetadata | ProducerIdBlock | None
"""What a command came to: the topic or broker as it is now, or was once gone; or the ids given."""


class VersionConflict(RequestError):
    """The state has moved on since the command was decided: decide again, on the new state."""

    def __init__(self, at_version: int, version: int) -> None:
        super().__init__(
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            f"decided at metadata version {at_version}, and it is {version} now: try again",
        )


C = TypeVar("C", CreateTopic, CreatePartitions, DeleteTopic)


def drafted(
    state: "ClusterState", decisions: Iterable[Callable[["ClusterState"], C]]
) -> list[C | RequestError]:
    """Commands that can follow each other, each decided on the state that those before it lead to;
    or what a decision, or its command, was refused with. Nothing is changed."""
    draft = state.draft()
    return [decided_on(draft, decide) for decide in decisions]


def decided_on(draft: "ClusterState", decide: Callable[["ClusterState"], C]) -> C | RequestError:
    """One of them, which has its effect on the draft."""
    try:
        command = decide(draft)
        draft.apply(command)
    except RequestError as error:
        return error
    return command


class ClusterState:
    """The metadata at one version. Every applied command raises the version by one."""

    def __init__(self) -> None:
        self.version = 0
        self.cluster_id: str | None = None
        self._brokers: dict[NodeId, BrokerMetadata] = {}
        self._topics = ClusterTopics()
        self._next_producer_id = 0
        self.wishes = Wishes()
        self.quotas = ClientQuotas()
        self.acls = AclTable()
        self.users = UserTable()
        self.broker_configs = BrokerConfigs()
        self._group_configs: dict[str, dict[str, str]] = {}

    @property
    def brokers(self) -> Mapping[NodeId, BrokerMetadata]:
        """All that have registered, alive or not, by number, in the order of their coming."""
        return self._brokers

    @property
    def topics(self) -> Mapping[str, TopicMetadata]:
        """By name, in the order of their creation."""
        return self._topics.by_name

    @property
    def load(self) -> Load:
        """What the brokers hold of all topics. To be read only."""
        return self._topics.load

    @property
    def groups_with_configs(self) -> list[str]:
        return sorted(self._group_configs)

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """What was set for one group alone; there need not be such a group."""
        return self._group_configs.get(group_id, {})

    def topic(self, name: str) -> TopicMetadata | None:
        return self._topics.by_name.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicMetadata | None:
        return self._topics.by_id.get(topic_id)

    def check(self, command: Command) -> None:
        """Raises the `RequestError` that `apply` would, and changes nothing.

        This is also all that `validate_only` does.
        """
        self._decide(command)

    def apply(self, command: Command) -> Applied:
        """Carry the command out. Raises `RequestError`, and then nothing has changed.

        Deterministic: a command that is refused here is refused wherever the same commands came
        before it, so a log may hold refused commands.
        """
        carry_out = self._decide(command)
        result = carry_out()
        self.version += 1
        return result

    def draft(self) -> "ClusterState":
        """A copy to create, extend and delete topics on, to see what can follow; all else is shared
        with this one."""
        draft = copy(self)
        draft._topics, draft.wishes = self._topics.copy(), self.wishes.copy()
        return draft

    def _decide(self, command: Command) -> Callable[[], Applied]:
        if command.at_version != self.version:
            raise VersionConflict(command.at_version, self.version)
        match command:
            case FoundCluster():
                return self._found(command)
            case RegisterBroker():
                broker = command.broker
                check_registration(self._brokers, broker)
                return lambda: self._put_broker(broker)
            case UnregisterBroker():
                check_removal(self._brokers, self.topics.values(), command.node_id)
                return lambda: self._remove_broker(command.node_id)
            case CreateTopic():
                return self._topics.create(command, self._brokers)
            case DeleteTopic():
                topic = self._topics.existing(command.id)
                return lambda: self._remove(topic)
            case SetTopicConfigs():
                return self._topics.set_configs(command)
            case CreatePartitions():
                return self._topics.grow(command, self._brokers)
            case AllocateProducerIds():
                return self._allocate_producer_ids(command)
            case MoveLeaders():
                return self.wishes.add_moves(
                    command.moves, lambda move: self._topics.existing(move.topic_id)
                )
            case EndMoves():
                return self.wishes.end_moves(command.outcomes)
            case ReassignPartitions():
                return self._reassign(command.reassignments)
            case FinishReassignments():
                return lambda: self._finish(command.reassignments)
            case SetObservers():
                return self._set_observers(command)
            case SetBrokerState():
                if command.node_id not in self._brokers:
                    raise no_broker(command.node_id)
                return self.wishes.set_broker_state(command.node_id, command.state)
            case AlterQuotas():
                return self.quotas.alter(command.changes)
            case AlterAcls():
                return self.acls.alter(command.added, command.removed)
            case AlterUsers():
                return self.users.alter(command.credentials, command.salt_secret)
            case SetBrokerConfigs():
                return self._set_broker_configs(command)
            case SetGroupConfigs():
                return self._set_group_configs(command)
            case _:
                assert_never(command)

    def _found(self, command: FoundCluster) -> Callable[[], Applied]:
        if self.cluster_id is not None:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"this is cluster {self.cluster_id} already"
            )

        def carry_out() -> None:
            self.cluster_id = command.cluster_id

        return carry_out

    def _set_broker_configs(self, command: SetBrokerConfigs) -> Callable[[], Applied]:
        node_id = command.node_id
        if node_id is not None and node_id not in self._brokers:
            raise no_broker(node_id)
        return lambda: self.broker_configs.set(node_id, command.configs)

    def _set_group_configs(self, command: SetGroupConfigs) -> Callable[[], Applied]:
        parse_all(GROUP_SETTINGS, command.configs)

        def carry_out() -> None:
            self._group_configs.pop(command.group_id, None)
            if command.configs:
                self._group_configs[command.group_id] = dict(command.configs)

        return carry_out

    def _reassign(self, changes: Sequence[Reassignment]) -> Callable[[], Applied]:
        topics = [
            reassigned(
                self._topics.existing(topic_id),
                of_topic,
                self._brokers,
                version=self.version,
                moves=self.wishes.moves,
            )
            for topic_id, of_topic in by_topic(changes).items()
        ]
        return lambda: self._topics.put_all(topics)

    def _finish(self, changes: Sequence[Reassignment]) -> None:
        for topic_id, of_topic in by_topic(changes).items():
            topic = self.topic_by_id(topic_id)
            if topic is not None:
                self._topics.put(finished(topic, of_topic))

    def _set_observers(self, command: SetObservers) -> Callable[[], Applied]:
        topic = self._topics.existing(command.topic_id)
        observers = checked_observers(topic, command.partition, command.replicas, self._brokers)
        return lambda: self._topics.put(replace(topic, observers=observers))

    def _allocate_producer_ids(self, command: AllocateProducerIds) -> Callable[[], Applied]:
        if command.count < 1:
            raise RequestError(ErrorCode.INVALID_REQUEST, f"a block of {command.count} ids")
        first = self._next_producer_id

        def carry_out() -> ProducerIdBlock:
            self._next_producer_id = first + command.count
            return ProducerIdBlock(first=ProducerId(first), end=ProducerId(first + command.count))

        return carry_out

    def _put_broker(self, broker: BrokerMetadata) -> BrokerMetadata:
        self._brokers[broker.node_id] = broker
        return broker

    def _remove_broker(self, node_id: NodeId) -> BrokerMetadata:
        self.wishes.forget_broker(node_id)
        self.broker_configs.forget_broker(node_id)
        return self._brokers.pop(node_id)

    def _remove(self, topic: TopicMetadata) -> TopicMetadata:
        self._topics.remove(topic)
        self.wishes.forget_topic(topic)
        return topic

    def encode(self) -> bytes:
        """A snapshot: equal states have equal bytes."""
        body = {
            "format": self._format(),
            "version": self.version,
            "cluster_id": self.cluster_id,
            "next_producer_id": self._next_producer_id,
            "brokers": [broker_body(broker) for broker in self._brokers.values()],
            "topics": [topic_body(topic) for topic in self.topics.values()],
            "wishes": self.wishes.body(),
            "quotas": self.quotas.body(),
            "acls": self.acls.body(),
            "users": self.users.body(),
            "broker_configs": self.broker_configs.body(),
            "group_configs": self._group_configs,
        }
        return json.dumps(body, separators=(",", ":"), sort_keys=True).encode()

    def _format(self) -> int:
        """The oldest that has all that there is. A broker that is yet to be upgraded may be sent
        the snapshot, and one that goes back to an older release finds it in its directory."""
        if self.users.has_begun:
            return _FORMAT_WITH_USERS
        return _FORMAT_WITH_ACLS if len(self.acls) else _FORMAT_WITHOUT_ACLS

    @classmethod
    def decode(cls, data: bytes) -> "ClusterState":
        """The state of a snapshot. Raises `StorageError` if it is none."""
        state = cls()
        try:
            body = json.loads(data)
            if body["format"] not in _SNAPSHOT_FORMATS:
                raise StorageError(
                    f"a metadata snapshot of format {body['format']}, which this version of "
                    f"Tidemark cannot read: {_SNAPSHOT_FORMAT} is the newest it knows"
                )
            state.version = int(body["version"])
            state.cluster_id = body["cluster_id"]
            state._next_producer_id = int(body["next_producer_id"])
            for broker in body["brokers"]:
                state._put_broker(BrokerMetadata(**from_plain(broker)))
            for topic in body["topics"]:
                state._topics.put(TopicMetadata(**from_plain(topic)))
            if "wishes" in body:
                state.wishes = Wishes.of(body["wishes"])
            if "quotas" in body:
                state.quotas = ClientQuotas.of(body["quotas"])
                state.broker_configs = BrokerConfigs.from_body(body["broker_configs"])
            # Where they are missing without reason, all might be allowed to everybody.
            if "acls" in body or body["format"] >= _FORMAT_WITH_ACLS:
                state.acls = AclTable.of(body["acls"])
            if "users" in body or body["format"] >= _FORMAT_WITH_USERS:
                state.users = UserTable.of(body["users"])
            for group_id, configs in body.get("group_configs", {}).items():
                state._group_configs[group_id] = dict(configs)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(f"a metadata snapshot that cannot be read: {error!r}") from error
        return state

    @classmethod
    def replay(cls, commands: Iterable[Command]) -> "ClusterState":
        """The state after `commands`; those that are refused change nothing, as when they came."""
        state = cls()
        for command in commands:
            try:
                state.apply(command)
            except RequestError:
                continue
        return state
