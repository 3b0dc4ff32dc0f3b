"""Consumer groups: list, describe, delete, and their committed offsets."""

from collections.abc import Collection, Iterable, Mapping

from tidemark.client.admin import group_descriptions
from tidemark.client.admin.calls import Calls
from tidemark.client.codes import check, check_each, only
from tidemark.client.connection import Connection
from tidemark.client.coordinator import as_commit, commit, fetch_commits, on_coordinator
from tidemark.client.descriptions import (
    BrokerDescription,
    CommittedOffset,
    GroupDescription,
    GroupListing,
    RebalanceDescription,
)
from tidemark.client.lookups import by_topic
from tidemark.client.network import address_of
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tidemark.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tidemark.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tidemark.protocol.types import TopicPartition


class GroupAdmin(Calls):
    """The calls about groups; each goes to the group's coordinator."""

    async def list_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """All groups of all brokers, by name; only those in `states` if any are given."""

        async def attempt() -> list[GroupListing]:
            await self._network.refresh()
            listings: list[GroupListing] = []
            for broker in self._network.view.brokers.values():
                connection = await self._network.pool.connection(address_of(broker))
                listings += await _list_groups(connection, broker, states)
            return sorted(listings, key=lambda listing: listing.group)

        return await self._network.retrying(attempt)

    async def describe_group(self, group: str) -> GroupDescription:
        """One group with its members. Raises GROUP_ID_NOT_FOUND if there is none."""

        async def ask(coordinator: BrokerDescription, connection: Connection) -> GroupDescription:
            return await group_descriptions.describe(group, coordinator, connection)

        return await on_coordinator(self._network, group, ask)

    async def describe_rebalances(self, group: str) -> list[RebalanceDescription]:
        """Why the group rebalanced, the latest last, as far back as its coordinator remembers."""

        async def ask(_: BrokerDescription, connection: Connection) -> list[RebalanceDescription]:
            return await group_descriptions.describe_rebalances(group, connection)

        return await on_coordinator(self._network, group, ask)

    async def delete_group(self, group: str) -> None:
        """Delete an empty group with its commits; NON_EMPTY_GROUP if it has members."""

        async def ask(_: BrokerDescription, connection: Connection) -> None:
            answer = await connection.request(
                DeleteGroupsRequest(groups_names=[group]), DeleteGroupsResponse
            )
            deleted = only(answer.results, f"group {group}")
            check(deleted.error_code, f"group {group}")

        await on_coordinator(self._network, group, ask)

    async def list_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """The group's commits, all of them or for `partitions`; without one: left out."""
        asked = None if partitions is None else list(partitions)

        async def ask(
            _: BrokerDescription, connection: Connection
        ) -> dict[TopicPartition, CommittedOffset]:
            return await fetch_commits(connection, group, asked)

        return await on_coordinator(self._network, group, ask)

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int | CommittedOffset]
    ) -> None:
        """Commit for a group that has no members now; NON_EMPTY_GROUP if it has some."""
        commits = {tp: as_commit(offset) for tp, offset in offsets.items()}

        async def ask(_: BrokerDescription, connection: Connection) -> None:
            try:
                await commit(connection, group, commits)
            except RequestError as error:
                if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
                    raise
                raise RequestError(
                    ErrorCode.NON_EMPTY_GROUP,
                    f"group {group} has members, who commit for themselves: stop them first",
                ) from error

        await on_coordinator(
            self._network, group, ask, final=(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)
        )

    async def delete_group_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget commits; GROUP_SUBSCRIBED_TO_TOPIC while a member reads that topic."""
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                    ],
                )
                for name, indexes in by_topic(partitions).items()
            ],
        )

        async def ask(_: BrokerDescription, connection: Connection) -> None:
            answer = await connection.request(request, OffsetDeleteResponse)
            check(answer.error_code, f"group {group}")
            check_each(
                (partition.error_code, f"{topic.name}-{partition.partition_index}", None)
                for topic in answer.topics
                for partition in topic.partitions
            )

        await on_coordinator(
            self._network, group, ask, final=(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)
        )


async def _list_groups(
    connection: Connection, broker: BrokerDescription, states: Collection[str]
) -> list[GroupListing]:
    can_filter = connection.version(ListGroupsRequest) >= 4
    if states and not can_filter:
        check(ErrorCode.UNSUPPORTED_VERSION, "the broker cannot list groups by state")
    request = ListGroupsRequest(states_filter=list(states)) if states else ListGroupsRequest()
    answer = await connection.request(request, ListGroupsResponse)
    check(answer.error_code, f"groups of broker {broker.node_id}")
    return [
        GroupListing(
            group=listed.group_id,
            protocol_type=listed.protocol_type,
            state=listed.group_state,
            coordinator=broker.node_id,
            kind=listed.group_type or "classic",
        )
        for listed in answer.groups
    ]
