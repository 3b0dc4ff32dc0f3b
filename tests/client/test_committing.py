"""A group's commits while the group moves on, against a coordinator that answers as it is told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
import trio

from tests.client.scripted_peer import ALL_VERSIONS, Peer, coordinator, only_broker, open_peer
from tidemark.client import ClientSettings, ErrorCode, RequestError, TopicPartition
from tidemark.client.addresses import Address
from tidemark.client.committing import Committer
from tidemark.client.coordinator import Membership
from tidemark.client.group import GroupMember
from tidemark.client.group_settings import GroupSettings
from tidemark.client.network import open_network
from tidemark.protocol.messages import (
    api_versions,
    find_coordinator,
    metadata,
    offset_commit,
)
from tidemark.protocol.types import Offset

HERE = TopicPartition("t", 0)


class Coordinator:
    """Takes commits of its generation; before the first it rebalances, and answers nothing."""

    def __init__(self, *, rebalances: bool = True, joins_as: str = "m") -> None:
        self._rebalances, self._joins_as = rebalances, joins_as
        self.address: Address | None = None
        self.generations: list[int] = []
        self.offsets: list[int] = []
        self.asked = trio.Event()
        self.member: GroupMember | None = None

    async def serve(self, peer: Peer) -> None:
        while True:
            header, request = await peer.receive()
            match request:
                case api_versions.ApiVersionsRequest():
                    await peer.answer(header, ALL_VERSIONS)
                case metadata.MetadataRequest():
                    await peer.answer(header, only_broker(self.address))
                case find_coordinator.FindCoordinatorRequest():
                    await peer.answer(header, coordinator(self.address))
                case offset_commit.OffsetCommitRequest():
                    self.generations.append(request.generation_id_or_member_epoch)
                    self.offsets.append(request.topics[0].partitions[0].committed_offset)
                    self.asked.set()
                    await peer.answer(header, self._commit())
                case _:
                    raise AssertionError(request)

    def _commit(self) -> offset_commit.OffsetCommitResponse:
        assert self.member is not None
        generation = self.member.membership.generation
        code = ErrorCode.NONE
        if len(self.generations) == 1:
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            if self._rebalances:
                self.member.membership = Membership(
                    generation=generation + 1, member_id=self._joins_as
                )
        elif self.generations[-1] != generation:
            code = ErrorCode.ILLEGAL_GENERATION
        partition = offset_commit.OffsetCommitResponsePartition(partition_index=0, error_code=code)
        topic = offset_commit.OffsetCommitResponseTopic(name="t", partitions=[partition])
        return offset_commit.OffsetCommitResponse(topics=[topic])


class Nobody:
    """Takes no part in rebalances; there are none here."""

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        raise AssertionError(partitions)

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        raise AssertionError(partitions)

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        raise AssertionError(partitions)

    def failed(self, error: OSError | RequestError) -> None:
        raise AssertionError(error)

    def is_callers(self, _error: Exception) -> bool:
        return False


@asynccontextmanager
async def open_committer(coordinator: Coordinator) -> AsyncIterator[Committer]:
    async with open_peer(coordinator.serve) as address:
        coordinator.address = address
        async with open_network((address,), ClientSettings(), Random(1)) as network:
            settings = GroupSettings(group="g")
            member = GroupMember(network, network.pool, settings, ("t",), Nobody())
            member.membership = Membership(generation=5, member_id="m")
            coordinator.member = member
            with trio.fail_after(10):
                yield Committer(network, "g", member)


async def test_a_retry_commits_nothing_in_the_name_of_the_next_generation() -> None:
    coordinator = Coordinator()
    async with open_committer(coordinator) as committer:
        with pytest.raises(RequestError, match="ILLEGAL_GENERATION"):
            await committer.commit({HERE: Offset(3)}, is_kept=lambda: False)
    assert coordinator.generations == [5, 5]


async def test_what_the_member_has_kept_is_committed_in_the_next_generation() -> None:
    coordinator = Coordinator()
    async with open_committer(coordinator) as committer:
        await committer.commit({HERE: Offset(3)}, is_kept=lambda: True)
    assert coordinator.generations == [5, 5, 6]


async def test_who_has_lost_its_place_commits_nothing_as_the_member_it_is_now() -> None:
    coordinator = Coordinator(joins_as="another")
    async with open_committer(coordinator) as committer:
        with pytest.raises(RequestError, match="ILLEGAL_GENERATION"):
            await committer.commit({HERE: Offset(3)}, is_kept=lambda: True)
    assert coordinator.generations == [5, 5]


async def test_a_commit_that_is_tried_again_does_not_set_a_later_one_back() -> None:
    coordinator = Coordinator(rebalances=False)
    async with open_committer(coordinator) as committer, trio.open_nursery() as nursery:
        nursery.start_soon(committer.try_commit, lambda: {HERE: Offset(3)})
        await coordinator.asked.wait()
        await committer.commit({HERE: Offset(5)})
    assert coordinator.offsets == [3, 3, 5]


async def test_what_is_done_with_is_asked_when_the_commit_before_is_made() -> None:
    """It may have said that more is done with."""
    coordinator, done = Coordinator(rebalances=False), Offset(3)
    async with open_committer(coordinator) as committer, trio.open_nursery() as nursery:
        nursery.start_soon(committer.commit, {HERE: Offset(4)})
        await coordinator.asked.wait()
        nursery.start_soon(committer.try_commit, lambda: {HERE: done})
        await trio.lowlevel.checkpoint()
        done = Offset(4)
    assert coordinator.offsets == [4, 4]
