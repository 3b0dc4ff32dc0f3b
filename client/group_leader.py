"""What falls to the member that leads its group: saying who gets which partitions."""

from collections.abc import Set

from tidemark.client.assignment import ASSIGNORS, Assignor
from tidemark.client.network import Network
from tidemark.protocol.consumer_protocol import decode_subscription
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.join_group import JoinGroupResponse
from tidemark.protocol.types import TopicPartition


class GroupLeader:
    """What a member has said while it led, if it has."""

    def __init__(self, network: Network, group: str) -> None:
        self._network = network
        self._group = group
        # As assigned last: all topics that members read, and how many partitions each has.
        self.topics: frozenset[str] = frozenset()
        self._counts: dict[str, int] = {}

    async def assign(self, joined: JoinGroupResponse) -> dict[str, list[TopicPartition]]:
        """Everybody's partitions, by member id; none where the members are to keep theirs.

        Raises `RequestError`, INCONSISTENT_GROUP_PROTOCOL if the group has chosen an assignor that
        is not known here, and `MalformedMessage` for a subscription that cannot be read.
        """
        members = {
            member.member_id: decode_subscription(member.metadata, member.group_instance_id)
            for member in joined.members
        }
        topics = {topic for subscription in members.values() for topic in subscription.topics}
        if not topics <= self._network.view.topics.keys():
            # Others read topics that this member does not.
            await self._network.refresh(sorted(topics))
        self.topics, self._counts = frozenset(topics), self._count_partitions(topics)
        if joined.skip_assignment:
            return {}
        return self._assignor(joined).assign(members, self._counts)

    def is_outdated(self) -> bool:
        """Whether one of the topics has been made or has grown since, as far as is known."""
        return self._counts != self._count_partitions(self.topics)

    def _assignor(self, joined: JoinGroupResponse) -> Assignor:
        assignor = ASSIGNORS.get(joined.protocol_name or "")
        if assignor is None:
            raise RequestError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"group {self._group} chose {joined.protocol_name!r}",
            )
        return assignor

    def _count_partitions(self, topics: Set[str]) -> dict[str, int]:
        view = self._network.view
        return {
            topic: len(view.topics[topic].partitions)
            for topic in sorted(topics)
            if topic in view.topics
        }
