"""Changing the cluster's metadata: one command at a time, answered once it is applied."""

from collections.abc import Callable
from uuid import UUID

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.broker.fake_cluster import FakeGroup, cluster_log
from tidemark.broker.metadata import cluster_log as log_module
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    AllocateProducerIds,
    AlterAcls,
    Command,
    CreateTopic,
    FoundCluster,
    ProducerIdBlock,
    RegisterBroker,
)
from tidemark.partitions.state_machines.cluster_machine import Outcome, command_batch
from tidemark.partitions.state_machines.cluster_values import BrokerAddress, TopicMetadata
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.header import place
from tidemark.protocol.types import Epoch, NodeId, Offset


def ids(count: int) -> Callable[[ClusterState], Command]:
    return lambda state: AllocateProducerIds(
        at_version=state.version, node_id=NodeId(1), count=count
    )


async def test_a_command_is_answered_when_it_is_committed_and_applied() -> None:
    group = FakeGroup()
    cluster, told = cluster_log(group), list[Outcome]()
    cluster.listen(told.append)
    results = []

    async def propose() -> None:
        results.append(await cluster.propose(ids(10)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(propose)
        await wait_all_tasks_blocked()
        assert (len(group.log), results) == (1, [])
        group.commit()
    assert isinstance(results[0], ProducerIdBlock)
    assert [outcome.result for outcome in told] == results


async def test_each_command_is_decided_on_the_state_after_the_one_before() -> None:
    group = FakeGroup(commits_at_once=True)
    cluster = cluster_log(group)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(cluster.propose, ids(10))
    assert cluster.state.version == 5


async def test_what_is_refused_is_not_appended() -> None:
    group = FakeGroup(commits_at_once=True)
    cluster = cluster_log(group)
    with pytest.raises(RequestError, match="a block of 0 ids"):
        await cluster.propose(ids(0))
    assert not group.log


async def test_only_the_leader_takes_commands_and_says_who_it_is() -> None:
    cluster = cluster_log(FakeGroup(is_serving=False, leader=NodeId(3)))
    assert (cluster.leads, cluster.leader) == (False, 3)
    with pytest.raises(RequestError, match="broker 3 leads") as raised:
        await cluster.propose(ids(1))
    assert raised.value.code is ErrorCode.NOT_CONTROLLER
    with pytest.raises(RequestError, match="a majority of its voters is needed"):
        await cluster_log(FakeGroup(is_serving=False, leader=None)).propose(ids(1))


async def test_who_does_not_lead_refuses_nothing_for_what_was_so_once() -> None:
    """A topic that is there already, say: the leader may have deleted it since."""

    def refuse(_: ClusterState) -> AllocateProducerIds:
        raise RequestError(ErrorCode.TOPIC_ALREADY_EXISTS)

    cluster = cluster_log(FakeGroup(is_serving=False, leader=NodeId(3)))
    with pytest.raises(RequestError, match="broker 3 leads") as raised:
        await cluster.propose(refuse)
    assert raised.value.code is ErrorCode.NOT_CONTROLLER


async def test_who_waits_is_answered_when_leadership_is_lost() -> None:
    group = FakeGroup()
    cluster = cluster_log(group)
    async with trio.open_nursery() as nursery:

        async def propose() -> None:
            with pytest.raises(RequestError, match="only looking will tell") as raised:
                await cluster.propose(ids(1))
            assert raised.value.code is ErrorCode.NOT_CONTROLLER

        nursery.start_soon(propose)
        await wait_all_tasks_blocked()
        cluster.leadership_changed()
        await wait_all_tasks_blocked()
        group.is_serving, group.leader = False, None
        cluster.leadership_changed()
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1, "it may lead again, and then it has not lost anything"
        group.leader = NodeId(2)
        cluster.leadership_changed()
    group.commit()


async def test_another_leaders_command_at_the_same_offset_is_no_answer() -> None:
    group = FakeGroup()
    cluster = cluster_log(group)
    async with trio.open_nursery() as nursery:

        async def propose() -> None:
            with pytest.raises(RequestError, match="NOT_CONTROLLER"):
                await cluster.propose(ids(1))

        nursery.start_soon(propose)
        await wait_all_tasks_blocked()
        other = command_batch(FoundCluster(at_version=0, cluster_id="x"), now_ms=1)
        place(other, 0, base_offset=Offset(0), epoch=Epoch(2))
        group.log[0] = other
        group.commit()


async def test_a_command_that_was_given_up_and_applied_later_only_delays_the_next() -> None:
    group = FakeGroup()
    cluster = cluster_log(group)
    with trio.move_on_after(0.01):
        await cluster.propose(ids(10))
    async with trio.open_nursery() as nursery:

        async def propose() -> None:
            block = await cluster.propose(ids(10))
            assert isinstance(block, ProducerIdBlock)
            assert block.first == 10

        nursery.start_soon(propose)
        await wait_all_tasks_blocked()
        assert len(group.log) == 1, "the second is not decided yet"
        group.commit()
        await wait_all_tasks_blocked()
        group.commit()
    assert len(group.log) == 2


async def test_what_was_given_up_and_is_lost_keeps_nobody_waiting() -> None:
    group = FakeGroup()
    cluster = cluster_log(group)
    with trio.move_on_after(0.01):
        await cluster.propose(ids(10))
    async with trio.open_nursery() as nursery:

        async def propose() -> None:
            with pytest.raises(RequestError, match="no broker leads"):
                await cluster.propose(ids(10))

        nursery.start_soon(propose)
        await wait_all_tasks_blocked()
        group.is_serving, group.leader = False, None
        cluster.leadership_changed()
    # It leads again, without what it had appended.
    group.log.clear()
    group.is_serving, group.epoch, group.commits_at_once = True, Epoch(3), True
    assert isinstance(await cluster.propose(ids(10)), ProducerIdBlock)


def topic(name: str, number: int) -> Callable[[ClusterState], CreateTopic]:
    return lambda state: CreateTopic(
        at_version=state.version,
        name=name,
        id=UUID(int=number),
        assignments=((NodeId(1),),),
        configs={},
        created_ms=0,
    )


async def test_topics_are_made_in_one_batch_and_refused_by_themselves() -> None:
    group = FakeGroup(commits_at_once=True)
    cluster, told = cluster_log(group), list[Outcome]()
    cluster.listen(told.append)
    await cluster.propose(registered)
    made = await cluster.propose_topics(
        [topic("a.b", 1), topic("a.b", 2), topic("a_b", 3), topic("c", 1), topic("c", 4)]
    )
    assert [isinstance(each, TopicMetadata) for each in made] == [True, False, False, False, True]
    codes = [each.code for each in made if isinstance(each, RequestError)]
    assert codes == [
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUEST,
    ]
    assert list(cluster.state.topics) == ["a.b", "c"]
    assert [outcome.position.offset for outcome in told] == [1, 2, 3]
    assert (len(group.log), cluster.state.version) == (2, 3)
    assert await cluster.propose_topics([topic("c", 5)]) != made
    assert len(group.log) == 2, "nothing is left to be appended"


async def test_of_a_batch_that_another_leader_has_to_carry_out_nobody_knows_the_outcome() -> None:
    group = FakeGroup()
    cluster = cluster_log(group)
    async with trio.open_nursery() as nursery:
        made = list[object]()

        async def propose() -> None:
            made.extend(await cluster.propose_topics([topic("a", 1), topic("b", 2)]))

        group.commits_at_once = True
        await cluster.propose(registered)
        group.commits_at_once = False
        nursery.start_soon(propose)
        await wait_all_tasks_blocked()
        group.is_serving, group.leader = False, NodeId(2)
        cluster.leadership_changed()
    assert [each.code for each in made if isinstance(each, RequestError)] == [
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_CONTROLLER,
    ]


def registered(state: ClusterState) -> RegisterBroker:
    return RegisterBroker(
        at_version=state.version,
        node_id=NodeId(1),
        directory_id=UUID(int=1),
        incarnation=1,
        listeners={},
        peer=BrokerAddress("a", 1),
        rack=None,
    )


async def test_a_version_can_be_waited_for() -> None:
    group = FakeGroup(commits_at_once=True)
    cluster = cluster_log(group)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cluster.wait_version, 2)
        await cluster.propose(ids(1))
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        await cluster.propose(ids(1))
    await cluster.wait_version(1)


def acls(state: ClusterState) -> Command:
    return AlterAcls(at_version=state.version, added=(), removed=())


@pytest.mark.parametrize(
    ("older", "who"),
    [(((2, 2),), "broker 2 runs"), (((2, 2), (3, 3), (4, 2)), "brokers 2, 4 run")],
)
async def test_what_brokers_that_are_there_cannot_read_is_not_appended(
    older: tuple[tuple[int, int], ...], who: str
) -> None:
    group = FakeGroup(commits_at_once=True)
    cluster = cluster_log(group, *older)
    with pytest.raises(RequestError, match=f"{who} an older release.*upgrade") as raised:
        await cluster.propose(acls)
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert not group.log
    await cluster.propose(ids(1))
    assert len(group.log) == 1


async def test_of_several_topics_those_are_made_that_all_can_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_module, "version_of", version_by_name)
    cluster = cluster_log(FakeGroup(commits_at_once=True), (2, 2))
    await cluster.propose(registered)
    made = await cluster.propose_topics([topic("old", 1), topic("new", 2), topic("other", 3)])
    assert [isinstance(each, TopicMetadata) for each in made] == [True, False, True]
    refused = made[1]
    assert isinstance(refused, RequestError)
    assert refused.code is ErrorCode.UNSUPPORTED_VERSION
    assert list(cluster.state.topics) == ["old", "other"]


def version_by_name(command: Command) -> int:
    return 3 if isinstance(command, CreateTopic) and command.name == "new" else 2


async def test_what_all_can_read_is_taken() -> None:
    group = FakeGroup(commits_at_once=True)
    await cluster_log(group, (2, 3)).propose(acls)
    assert len(group.log) == 1
