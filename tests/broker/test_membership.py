"""Belonging to a cluster: who is taken in, who is refused, and who passes on whom."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from tests.broker.fake_cluster import FakeGroup, cluster_log
from tidemark.broker.config import Address
from tidemark.broker.metadata.entry import join, refuse_another_cluster
from tidemark.broker.metadata.introduction import join_request, registration
from tidemark.broker.metadata.membership import Membership
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import FoundCluster
from tidemark.partitions.state_machines.cluster_values import BrokerAddress, BrokerMetadata
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

R = TypeVar("R", bound=Message)


def broker(node_id: int, *, incarnation: int = 1, directory: int | None = None) -> BrokerMetadata:
    return BrokerMetadata(
        node_id=NodeId(node_id),
        directory_id=UUID(int=directory or node_id),
        incarnation=incarnation,
        listeners={"PLAINTEXT": BrokerAddress(f"b{node_id}", 9092)},
        peer=BrokerAddress(f"b{node_id}", 9093),
        rack=None,
    )


@dataclass
class Line:
    """Calls to the leader."""

    leader: Membership | None = None
    caller: NodeId = field(default=NodeId(2))
    up: dict[NodeId, int] = field(default_factory=dict)
    calls: int = 0

    def trouble_with(self, node: NodeId) -> str:
        return f"nobody is where {node} was"

    async def call(self, node: NodeId, request: Message, answer_type: type[R]) -> R:
        self.calls += 1
        assert self.leader is not None
        assert isinstance(request, JoinRequest)
        try:
            response = await self.leader.serve_join(self.caller, request)
        except RequestError as error:
            response = JoinResponse(
                error_code=error.code,
                error_message=error.message,
                node_id=1,
                directory_id=UUID(int=1),
            )
        assert isinstance(response, answer_type)
        return response


def found(state: ClusterState) -> FoundCluster:
    return FoundCluster(at_version=state.version, cluster_id="ours")


@asynccontextmanager
async def leader() -> AsyncIterator[tuple[Membership, FakeGroup]]:
    group = FakeGroup(commits_at_once=True)
    cluster = cluster_log(group)
    membership = Membership(broker(1), "ours", cluster, Line(), lambda: [NodeId(1)])
    await membership.register(found)
    yield membership, group


async def test_a_new_broker_learns_the_cluster_its_brokers_and_the_voters() -> None:
    async with leader() as (membership, group):

        async def call(address: Address, request: JoinRequest) -> JoinResponse:
            return await membership.serve_join(None, request)

        answered = await join(broker(2), [Address("x", 1)], call)
        assert answered.cluster_id == "ours"
        assert answered.metadata_version == group.machine.state.version == 3
        assert [(each.node_id, each.host) for each in answered.brokers] == [(1, "b1"), (2, "b2")]
        assert list(answered.voters) == [1]
        assert group.machine.state.brokers[NodeId(2)] == broker(2)


async def test_addresses_are_tried_in_turn_until_one_answers(autojump_clock: MockClock) -> None:
    async with leader() as (membership, _):
        asked = []

        async def call(address: Address, request: JoinRequest) -> JoinResponse:
            asked.append(address.host)
            match len(asked):
                case 1:
                    raise ConnectionRefusedError
                case 2:
                    await trio.sleep_forever()
                case 3:
                    raise RequestError(ErrorCode.NOT_CONTROLLER, "not yet")
            return await membership.serve_join(None, request)

        answered = await join(broker(2), [Address("x", 1), Address("y", 2)], call)
        assert answered.cluster_id == "ours"
        assert asked == ["x", "y", "x", "y"]


@pytest.mark.parametrize(
    ("own", "cluster_id", "words"),
    [
        (broker(1, directory=9), None, "a broker 1 already"),
        (broker(1, incarnation=0), None, "has been started again since"),
        (broker(2), "theirs", "belongs to cluster theirs, and this is ours: correct its"),
        (replace(broker(2), peer=BrokerAddress("", 1)), "theirs", "refuses broker 2"),
    ],
)
async def test_a_refusal_for_good_ends_the_broker(
    own: BrokerMetadata, cluster_id: str | None, words: str
) -> None:
    async with leader() as (membership, _):
        line = Line(membership)

        async def call(address: Address, request: JoinRequest) -> JoinResponse:
            return await line.call(NodeId(1), request, JoinResponse)

        with pytest.raises(StorageError, match=words):
            await join(own, [Address("x", 1)], call, cluster_id=cluster_id)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (OSError(111, "Connection refused"), "nobody answers at x:1: Connection refused"),
        (
            RequestError(ErrorCode.NETWORK_EXCEPTION, "x:1 has hung up"),
            "does not speak as brokers do among themselves .*behind peers=",
        ),
        (RequestError(ErrorCode.NOT_CONTROLLER, "nobody leads"), "not take .* yet: nobody leads"),
    ],
)
async def test_why_nobody_takes_it_in_is_said_now_and_then(
    problem: Exception, words: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def call(address: Address, request: JoinRequest) -> JoinResponse:
        raise problem

    with trio.move_on_after(16):
        await join(broker(2), [Address("x", 1)], call)
    assert len(caplog.messages) == 3
    assert all(re.search(words, message) for message in caplog.messages)


async def test_a_broker_asks_the_others_and_not_itself() -> None:
    async with leader() as (membership, _):
        asked = []

        async def call(address: Address, request: JoinRequest) -> JoinResponse:
            asked.append(address.host)
            return await membership.serve_join(None, request)

        await join(broker(2), [Address("b2", 9093), Address("x", 1)], call)
        assert asked == ["x"]
        with pytest.raises(StorageError, match="b2:9093 is this broker's own address"):
            await join(broker(2), [Address("b2", 9093)], call)


async def test_a_directory_of_one_cluster_is_not_started_for_another() -> None:
    async with leader() as (membership, _):
        line = Line(membership)

        async def call(address: Address, request: JoinRequest) -> JoinResponse:
            if address.host == "dead":
                raise ConnectionRefusedError
            return await line.call(NodeId(1), request, JoinResponse)

        addresses = [Address("dead", 1), Address("x", 1)]
        await refuse_another_cluster(broker(2), "ours", addresses, call, directory="d")
        with pytest.raises(StorageError, match=r"--join x:1 leads to another cluster than .* d is"):
            await refuse_another_cluster(broker(3), "theirs", addresses, call, directory="d")


async def test_a_broker_knows_its_cluster_before_it_knows_what_is_committed() -> None:
    """All brokers of a cluster were stopped, and some are started: they do not refuse the others
    that would make the majority."""
    first = FakeGroup(is_serving=False, leader=None)
    membership = Membership(broker(1), "ours", cluster_log(first), Line(), list)
    line = Line(membership)

    async def call(address: Address, request: JoinRequest) -> JoinResponse:
        return await line.call(NodeId(1), request, JoinResponse)

    addresses = [Address("by-another-name", 1)]
    await refuse_another_cluster(broker(2), "ours", addresses, call, directory="d")
    with pytest.raises(StorageError, match="belongs to cluster theirs, and this is ours"):
        await refuse_another_cluster(broker(3), "theirs", addresses, call, directory="d")


async def test_a_start_is_registered_with_the_leader_and_applied_here() -> None:
    async with leader() as (membership, group):
        follower = FakeGroup(log=group.log, is_serving=False, leader=None)
        line = Line(membership)
        second = Membership(broker(2, incarnation=4), "ours", cluster_log(follower), line, list)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(second.register, found)
            await trio.sleep(0.02)
            follower.leader = NodeId(1)
            await trio.sleep(0.02)
            assert line.calls == 0, "it is not connected yet"
            line.up[NodeId(1)] = 1
            await trio.sleep(0.2)
            assert line.calls == len(nursery.child_tasks) == 1, "it waits for its own state"
            follower.commit()
        assert group.machine.state.brokers[NodeId(2)].incarnation == 4


async def test_a_start_says_what_it_waits_for_once_it_is_registered(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with leader() as (membership, group):
        follower = FakeGroup(log=group.log, is_serving=False, leader=NodeId(1))
        line = Line(membership, up={NodeId(1): 1})
        second = Membership(broker(2), "ours", cluster_log(follower), line, list)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(second.register, found)
            await trio.sleep(18)
            assert len(caplog.messages) == 3
            assert caplog.messages[0] == (
                "broker 2 is registered, and waits for what the cluster has decided before: version"
                " 0 of its metadata is here, and it is to be 3 (broker 1 leads them, and is"
                " connected)"
            )
            del line.up[NodeId(1)]
            await trio.sleep(5)
            assert caplog.messages[-1].endswith("(broker 1 leads them: nobody is where 1 was)")
            follower.leader = None
            await trio.sleep(5)
            assert "a majority of its voters is needed" in caplog.messages[-1]
            follower.commit()


async def test_a_leader_whose_registration_the_others_do_not_store_says_so(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    group = FakeGroup()
    membership = Membership(broker(1), "ours", cluster_log(group), Line(), list)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(membership.register, found)
        await trio.sleep(17)
        assert len(caplog.messages) == 3
        assert "broker 1 is not registered yet: REQUEST_TIMED_OUT: too few" in caplog.messages[0]
        assert len(group.log) == 1, "it does not propose the same again meanwhile"
        group.commits_at_once = True
        group.commit()
    assert group.machine.state.cluster_id == "ours"
    assert group.machine.state.brokers[NodeId(1)] == broker(1)


async def test_a_leader_that_does_not_answer_is_named(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> JoinResponse:
        await trio.sleep_forever()
        raise AssertionError

    line = Line(up={NodeId(1): 1})
    monkeypatch.setattr(line, "call", never)
    follower = cluster_log(FakeGroup(is_serving=False, leader=NodeId(1)))
    with trio.move_on_after(6):
        await Membership(broker(2), "ours", follower, line, list).register(found)
    (message,) = caplog.messages
    assert message.endswith(
        "REQUEST_TIMED_OUT: broker 1, which leads the cluster's metadata, does not answer"
    )


async def test_a_join_is_passed_on_once() -> None:
    async with leader() as (membership, group):
        follower = FakeGroup(log=group.log, is_serving=False, leader=NodeId(1))
        line = Line(membership, up={NodeId(1): 1})
        follower.commit()
        second = Membership(broker(2), "ours", cluster_log(follower), line, list)
        request = join_request(broker(3), None)
        assert (await second.serve_join(None, request)).node_id == 1
        assert (await second.serve_join(NodeId(3), request)).node_id == 1
        with pytest.raises(RequestError, match="NOT_CONTROLLER"):
            await second.serve_join(NodeId(4), request)


async def test_the_command_is_what_the_broker_says_of_itself() -> None:
    async with leader() as (_, group):
        assert registration(broker(7), group.machine.state).broker == broker(7)
