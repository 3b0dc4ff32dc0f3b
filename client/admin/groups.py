"""Consumer groups: list, describe, delete, and their committed offsets."""

from collections.abc import Collection, Iterable, Mapping

from tidemark.client.descriptions import CommittedOffset, GroupDescription, GroupListing
from tidemark.protocol.types import Offset, TopicPartition


class GroupAdmin:
    """The calls about groups; each goes to the group's coordinator."""

    async def list_groups(self, *, states: Collection[str] = ()) -> list[GroupListing]:
        """All groups of all brokers, by name; only those in `states` if any are given."""
        raise NotImplementedError

    async def describe_group(self, group: str) -> GroupDescription:
        """One group with its members. Raises GROUP_ID_NOT_FOUND if there is none."""
        raise NotImplementedError

    async def delete_group(self, group: str) -> None:
        """Delete an empty group with its commits; NON_EMPTY_GROUP if it has members."""
        raise NotImplementedError

    async def list_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """The group's commits, all of them or for `partitions`; without one: left out."""
        raise NotImplementedError

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, Offset | CommittedOffset]
    ) -> None:
        """Commit for a group that has no members now; UNKNOWN_MEMBER_ID if it has some."""
        raise NotImplementedError

    async def delete_group_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget commits; GROUP_SUBSCRIBED_TO_TOPIC while a member reads that topic."""
        raise NotImplementedError
