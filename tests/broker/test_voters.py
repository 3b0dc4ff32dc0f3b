"""The voters of the metadata: observers catch up, and become voters in whole steps.

On real groups without a network or time: `tests/partitions/replication/cluster.py`.
"""

from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from tests.partitions.replication.cluster import Broker, Cluster
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.metadata.voters import SETTLED_SECONDS, adjust_voters, keep_voters
from tidemark.broker.network.turn import Turn
from tidemark.partitions.replication.elections import Priority
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    RegisterBroker,
    SetBrokerState,
)
from tidemark.partitions.state_machines.cluster_machine import (
    CLUSTER_TOPIC,
    ClusterMachine,
    command_batch,
)
from tidemark.partitions.state_machines.cluster_values import BrokerAddress, BrokerState
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.testing.memory_files import MemoryFiles

PARTITION = TopicPartition(CLUSTER_TOPIC, 0)


class Brokers:
    """Brokers that know of each other; only the first one votes on the metadata at first."""

    def __init__(self, count: int) -> None:
        self.cluster = Cluster(count)
        self.machines: dict[NodeId, ClusterMachine] = {}
        for broker in self.cluster.brokers.values():
            self.open(broker)
        self.run(1)
        for node_id in self.cluster.brokers:
            self.register(node_id)

    def open(self, broker: Broker) -> None:
        machine = self.machines[broker.node_id] = ClusterMachine()
        replica = broker.open(
            (1,),
            key=CLUSTER_KEY,
            partition=PARTITION,
            priority=Priority.CLUSTER,
            is_eager=True,
            applier=machine,
        )
        if not replica.group.is_voter:
            broker.node.observe(CLUSTER_KEY, (NodeId(1),))

    def register(self, node_id: NodeId) -> None:
        leader = self.cluster.leader(CLUSTER_KEY)
        address = BrokerAddress("there", 9093)
        command = RegisterBroker(
            at_version=self.machines[leader.node_id].state.version,
            node_id=node_id,
            directory_id=UUID(int=node_id),
            incarnation=1,
            listeners={},
            peer=address,
            rack=None,
        )
        self.apply(command)

    def decommission(self, node_id: int) -> None:
        leader = self.cluster.leader(CLUSTER_KEY)
        version = self.machines[leader.node_id].state.version
        self.apply(
            SetBrokerState(
                at_version=version, node_id=NodeId(node_id), state=BrokerState.DECOMMISSIONING
            )
        )

    def apply(self, command: Command) -> None:
        leader = self.cluster.leader(CLUSTER_KEY)
        leader.replica(CLUSTER_KEY).append_own(bytes(command_batch(command, now_ms=1)))
        self.run(1)

    def run(self, seconds: float) -> None:
        self.cluster.run(seconds)

    def adjust(self, *dead: int, times: int = 20) -> None:
        for _ in range(times):
            for broker in self.cluster.brokers.values():
                state = self.machines[broker.node_id].state
                adjust_voters(broker.node, state, lambda node: node not in dead)
            self.run(0.25)

    def voters(self) -> set[tuple[int, ...]]:
        """What each broker takes for the voters."""
        return {
            broker.replica(CLUSTER_KEY).group.config.voters
            for broker in self.cluster.brokers.values()
        }


def test_two_brokers_have_one_voter_and_both_have_the_state() -> None:
    brokers = Brokers(2)
    brokers.adjust()
    assert brokers.voters() == {(1,)}
    states = [machine.state.encode() for machine in brokers.machines.values()]
    assert states[0] == states[1]
    assert list(brokers.machines[NodeId(2)].state.brokers) == [1, 2]


def test_three_brokers_have_three_voters_and_five_have_five() -> None:
    brokers = Brokers(4)
    brokers.adjust()
    assert brokers.voters() == {(1, 2, 3)}
    fifth = brokers.cluster.start(5, MemoryFiles(), StateDb.open(":memory:"))
    brokers.open(fifth)
    brokers.run(1)
    brokers.register(NodeId(5))
    brokers.adjust()
    assert brokers.voters() == {(1, 2, 3, 4, 5)}


def test_the_dead_are_passed_over() -> None:
    brokers = Brokers(4)
    brokers.adjust(2)
    assert brokers.voters() == {(1, 3, 4)}


@pytest.mark.parametrize("leaving", [1, 2], ids=["the leader", "another voter"])
def test_who_is_to_leave_does_not_vote_where_there_are_enough_others(leaving: int) -> None:
    brokers = Brokers(4)
    brokers.adjust()
    brokers.decommission(leaving)
    brokers.adjust()
    assert brokers.voters() == {tuple(sorted({1, 2, 3, 4} - {leaving}))}
    brokers.register(NodeId(4))
    assert len({machine.state.encode() for machine in brokers.machines.values()}) == 1


def test_who_is_to_leave_votes_where_the_others_are_too_few() -> None:
    brokers = Brokers(3)
    brokers.adjust()
    brokers.decommission(3)
    brokers.adjust()
    assert brokers.voters() == {(1, 2, 3)}


def test_a_learner_stays_one_while_it_lives_and_is_given_up_when_it_is_dead() -> None:
    brokers = Brokers(3)

    def learners() -> list[int]:
        progress = brokers.cluster[1].replica(CLUSTER_KEY).group.progress()
        return [each.node for each in progress if not each.is_voter]

    brokers.cluster.cut |= {(1, 2), (2, 1)}
    brokers.adjust(times=2)
    assert learners() == [2, 3]
    brokers.cluster.kill(3)
    brokers.adjust(3, times=1)
    assert learners() == [2]
    brokers.adjust(2, 3, times=1)
    assert learners() == []


def test_nobody_is_missed_when_the_first_voter_dies_after_the_change() -> None:
    brokers = Brokers(3)
    brokers.adjust()
    brokers.cluster.kill(1)
    brokers.run(3)
    leader = brokers.cluster.leader(CLUSTER_KEY)
    assert leader.node_id in (2, 3)
    brokers.register(NodeId(2))
    assert brokers.machines[NodeId(2)].state.encode() == brokers.machines[NodeId(3)].state.encode()


@pytest.mark.parametrize(("count", "has_told"), [(1, False), (3, True)])
async def test_a_look_has_work_done_only_where_it_has_told_something(
    count: int, has_told: bool, autojump_clock: MockClock
) -> None:
    del autojump_clock
    brokers = Brokers(count)
    leader = brokers.cluster.leader(CLUSTER_KEY)
    state = brokers.machines[leader.node_id].state
    touched: list[float] = []
    with trio.move_on_after(2.5 * SETTLED_SECONDS):
        await keep_voters(
            leader.node,
            lambda: state,
            lambda node: True,
            turn=Turn(),
            touch=lambda: touched.append(trio.current_time()),
            wait_more=trio.sleep_forever,
        )
    assert bool(touched) is has_told
