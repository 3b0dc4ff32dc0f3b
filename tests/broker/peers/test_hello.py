"""Who is taken for the broker it says it is, and who is told why not."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest
import trio

from tests.broker.peers.brokers import CLUSTER, Broker, directory, introduce, open_one
from tidemark.broker.config import Address
from tidemark.broker.peers import Peer
from tidemark.broker.peers.hello import (
    Refusal,
    Sighting,
    answer,
    hello_to,
    judge,
    judge_answer,
    metadata_of,
)
from tidemark.partitions.state_machines.cluster_values import BrokerAddress, BrokerMetadata
from tidemark.protocol.messages.peer.hello import HelloRequest, HelloResponse
from tidemark.protocol.messages.peer.versions import LAST_VERSION
from tidemark.protocol.types import NodeId

ONE = BrokerMetadata(
    node_id=NodeId(1),
    directory_id=directory(1),
    incarnation=3,
    listeners={"INSIDE": BrokerAddress("a", 1), "OUTSIDE": BrokerAddress("b", 2)},
    peer=BrokerAddress("c", 3),
    rack="r",
)
TWO = BrokerMetadata(
    node_id=NodeId(2),
    directory_id=directory(2),
    incarnation=5,
    listeners={},
    peer=BrokerAddress("d", 4),
    rack=None,
)
HELLO = hello_to(TWO.node_id, ONE, CLUSTER)


def changed(**values: object) -> HelloRequest:
    fields = {field.name: getattr(HELLO, field.name) for field in HelloRequest.wire_fields}
    return HelloRequest(**{**fields, **values})


def test_a_hello_says_all_that_a_broker_is() -> None:
    assert (
        metadata_of(
            HELLO.node_id, HELLO.directory_id, HELLO.incarnation, HELLO.rack, HELLO.endpoints
        )
        == ONE
    )
    assert metadata_of(1, directory(1), 1, None, ()) is None


@pytest.mark.parametrize(
    ("hello", "cluster_id", "known", "refusal"),
    [
        (HELLO, CLUSTER, None, None),
        (HELLO, CLUSTER, Sighting(directory(1), 3), None),
        (HELLO, CLUSTER, Sighting(directory(1), 2), None),
        (HELLO, CLUSTER, Sighting(directory(1), 4), Refusal.OLD_INCARNATION),
        (HELLO, CLUSTER, Sighting(directory(9), 1), Refusal.OTHER_DIRECTORY),
        (HELLO, "another", None, Refusal.OTHER_CLUSTER),
        (HELLO, None, None, Refusal.NO_CLUSTER_YET),
        (changed(node_id=2), CLUSTER, None, Refusal.OWN_NODE_ID),
        (changed(to_node_id=3), CLUSTER, None, Refusal.OTHER_BROKER),
        (
            changed(oldest_version=LAST_VERSION + 1, newest_version=9),
            CLUSTER,
            None,
            Refusal.VERSION,
        ),
        (changed(oldest_version=LAST_VERSION, newest_version=9), CLUSTER, None, None),
        (changed(oldest_version=1, newest_version=1), CLUSTER, None, Refusal.VERSION),
        (changed(oldest_version=0, newest_version=9), CLUSTER, None, None),
    ],
)
def test_a_hello_is_taken_or_refused(
    hello: HelloRequest, cluster_id: str | None, known: Sighting | None, refusal: Refusal | None
) -> None:
    refused = judge(hello, TWO, cluster_id, known)
    assert (refused and refused.refusal) == refusal
    response = answer(hello, TWO, refused, is_known=True)
    assert response.refusal == (refusal or 0)
    assert bool(response.reason) == (refusal is not None)
    taken = judge_answer(TWO.node_id, response, None)
    assert (taken and taken.refusal) == refusal


@pytest.mark.parametrize(
    ("known", "node", "version", "refusal"),
    [
        (None, 2, 2, None),
        (Sighting(directory(2), 5), 2, 2, None),
        (Sighting(directory(2), 6), 2, 2, Refusal.OLD_INCARNATION),
        (Sighting(directory(3), 5), 2, 2, Refusal.OTHER_DIRECTORY),
        (None, 3, 2, Refusal.OTHER_BROKER),
        (None, 2, 7, Refusal.VERSION),
    ],
)
def test_who_answers_has_to_be_the_one_that_was_meant(
    known: Sighting | None, node: int, version: int, refusal: Refusal | None
) -> None:
    response = HelloResponse(
        version=version, node_id=node, directory_id=directory(2), incarnation=5
    )
    refused = judge_answer(NodeId(2), response, known)
    assert (refused and refused.refusal) == refusal


def test_a_refusal_of_a_newer_kind_is_still_one() -> None:
    response = HelloResponse(
        refusal=99, reason="tomorrow's", node_id=2, directory_id=directory(2), incarnation=5
    )
    refused = judge_answer(NodeId(2), response, None)
    assert refused is not None
    assert refused.reason == "tomorrow's"


async def refuse(one: Broker, two: Broker, caplog: pytest.LogCaptureFixture, reason: str) -> None:
    """`one` cannot connect to `two`; both say why, in the same words, `one` only once."""
    with caplog.at_level(logging.WARNING):
        introduce(one, two)
        while two.metrics.refused_hellos.value < 3:  # noqa: ASYNC110 # a count has no event
            await trio.sleep(0.005)
        await trio.testing.wait_all_tasks_blocked(0.01)
    assert not one.network.up
    assert not two.network.up
    said = [line for line in caplog.messages if reason in line]
    assert (
        len([line for line in said if line.startswith(f"no connection to broker {two.node} ")]) == 1
    )
    assert [line for line in said if line.startswith("refused a broker at")]


async def test_a_broker_of_another_cluster_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with open_one(1, cluster_id="mine") as one, open_one(2, cluster_id="yours") as two:
        await refuse(one, two, caplog, "broker 1 belongs to cluster mine, broker 2 to yours")


async def test_a_broker_that_is_still_starting_is_no_cause_for_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_one(1) as one, open_one(2, cluster_id=None) as two:
        one.know(two)
        while two.metrics.refused_hellos.value < 2:  # noqa: ASYNC110 # a count has no event
            await trio.sleep(0.005)
        two.network.enter(CLUSTER)
        two.know(one)
        await one.wait_up(two)
    assert not [record for record in caplog.records if "starting" in record.message]
    with caplog.at_level(logging.INFO):
        async with open_one(1) as one, open_one(2, cluster_id=None) as two:
            one.know(two)
            while two.metrics.refused_hellos.value < 2:  # noqa: ASYNC110 # a count has no event
                await trio.sleep(0.005)
    assert len([each for each in caplog.records if "still starting" in each.message]) == 1


async def test_a_second_broker_with_a_node_id_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever was seen first is that broker, until the cluster says otherwise."""
    async with open_one(2) as two:
        async with open_one(1) as one:
            introduce(one, two)
            await two.wait_up(one)
        await two.wait_down(one)
        async with open_one(1, directory_id=UUID(int=5)) as other:
            await refuse(other, two, caplog, "broker 1 has the data directory")
            two.network.set_peers({NodeId(1): Peer(other.network.address, UUID(int=5))})
            await two.wait_up(other)


async def test_a_broker_that_the_cluster_knows_by_another_disk_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_one(1, directory_id=UUID(int=5)) as one, open_one(2) as two:
        await refuse(one, two, caplog, "broker 1 has the data directory")


async def test_an_earlier_life_of_a_broker_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with open_one(1) as one:
        async with open_one(2, incarnation=8) as two:
            introduce(one, two)
            await one.wait_up(two)
        await one.wait_down(two)
        async with open_one(2, incarnation=7) as zombie:
            await refuse(zombie, one, caplog, "broker 2 in its life 7 is too late")


async def test_a_later_life_of_a_broker_ends_the_connections_of_the_earlier() -> None:
    """The earlier one hangs, say: its sockets are still open."""
    async with open_one(1) as one, open_one(2, incarnation=1) as two:
        introduce(one, two)
        await one.wait_up(two)
        async with open_one(2, incarnation=2) as again:
            again.know(one)
            await one.wait_told("up", 2, 2)
            assert one.told == [("up", 2, 1), ("down", 2), ("up", 2, 2)]


async def test_two_brokers_with_one_node_id_do_not_talk(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        open_one(1) as one,
        open_one(2) as two,
        open_one(2, directory_id=UUID(int=5)) as other,
    ):
        introduce(one, two)
        await one.wait_up(two)
        other.network.set_peers({NodeId(3): Peer(two.network.address)})
        with caplog.at_level(logging.WARNING):
            while two.metrics.refused_hellos.value < 1:  # noqa: ASYNC110 # a count has no event
                await trio.sleep(0.005)
        assert one.network.up == {2: 1}


async def test_an_address_with_another_broker_behind_it_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_one(1) as one, open_one(2) as two:
        one.network.set_peers({NodeId(3): Peer(two.network.address)})
        with caplog.at_level(logging.WARNING):
            while two.metrics.refused_hellos.value < 2:  # noqa: ASYNC110 # a count has no event
                await trio.sleep(0.005)
        assert any("this is broker 2, not 3" in line for line in caplog.messages)
        assert one.told == []


async def test_a_broker_without_a_cluster_takes_nobody_until_it_enters_one() -> None:
    async with open_one(1) as one, open_one(2, cluster_id=None) as two:
        one.know(two)
        while two.metrics.refused_hellos.value < 1:  # noqa: ASYNC110 # a count has no event
            await trio.sleep(0.005)
        two.network.enter(CLUSTER)
        two.know(one)
        await two.wait_up(one)


async def test_an_address_that_refuses_is_tried_again() -> None:
    async with open_one(1) as one:
        async with open_one(2) as two:
            address: Address = two.network.address
        one.network.set_peers({NodeId(2): Peer(address)})
        while one.metrics.attempts.value < 4:  # noqa: ASYNC110 # a count has no event
            await trio.sleep(0.005)
        assert one.told == []
