"""How the brokers of a test stand: who leads, who lags, what a person who has waited in vain wants
to know. The running brokers are looked into, by node id; nobody is asked over the network."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidemark.broker.metadata.brokers import Quorum
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.server import RunningBroker
from tidemark.partitions.state_machines.cluster_brokers import voter_count
from tidemark.partitions.storage.state_db import PartitionKey

Running = Mapping[int, RunningBroker]


def leader_of(running: Running, topic: str, partition: int) -> int | None:
    """Who serves the partition; of several that believe they do, the one with the newest epoch."""
    led = [
        (replica.epoch, node)
        for node, broker in running.items()
        if (replica := broker.node.topics.replica(topic, partition)) and replica.is_serving
    ]
    return max(led)[1] if led else None


def controller(running: Running) -> int | None:
    """Who leads the cluster's metadata; of several that believe they do, the newest."""
    led = [
        (quorum.epoch, node)
        for node, broker in running.items()
        if broker.node.controller.is_here
        and (quorum := broker.node.brokers.quorum(CLUSTER_KEY)) is not None
    ]
    return max(led)[1] if led else None


def is_complete(running: Running, nodes: Collection[int]) -> bool:
    """Whether all know all, and any of them may go."""
    if not all(_knows_all(broker, nodes) for broker in running.values()):
        return False
    quorum = _quorum(running, CLUSTER_KEY)
    return quorum is not None and (
        len(quorum.voters) == voter_count(len(nodes))
        and all(each.is_caught_up for each in (*quorum.voters, *quorum.learners))
    )


def behind(running: Running) -> list[str]:
    """The replicas on running brokers that do not hold all, for a person to read."""
    groups = {CLUSTER_KEY: "the metadata"}
    for broker in running.values():
        for topic in broker.node.topics:
            for partition in range(topic.partition_count):
                groups[PartitionKey(topic.id, partition)] = f"{topic.name}-{partition}"
    found = []
    for key, name in groups.items():
        quorum = _quorum(running, key)
        if quorum is None:
            found.append(f"{name}, which nobody leads")
            continue
        end = max(each.end_offset for each in quorum.voters)
        if quorum.high_watermark < end:
            found.append(f"{name}, committed up to {quorum.high_watermark} of {end}")
        found += [
            f"{name} on broker {each.node_id}"
            for each in (*quorum.voters, *quorum.learners)
            if each.node_id in running and not each.is_caught_up
        ]
    return found


def described(running: Running, nodes: Collection[int]) -> str:
    """All brokers in a line, for a person who has waited in vain."""
    said = [
        f"broker {node}: controller {broker.node.brokers.controller}, "
        f"connected to {sorted(broker.peers.up)}"
        for node, broker in running.items()
    ]
    gone = [f"broker {node}: does not run" for node in nodes if node not in running]
    return "; ".join([*said, *gone])


def _quorum(running: Running, key: PartitionKey) -> Quorum | None:
    """A group as its leader sees it; of several that believe they lead, the newest."""
    told = (broker.node.brokers.quorum(key) for broker in running.values())
    return max(
        (each for each in told if each is not None), key=lambda each: each.epoch, default=None
    )


def _knows_all(broker: RunningBroker, nodes: Collection[int]) -> bool:
    known = broker.node.brokers
    return (
        set(known.registered) == set(nodes)
        and all(map(known.is_alive, known.registered))
        and known.controller is not None
    )
