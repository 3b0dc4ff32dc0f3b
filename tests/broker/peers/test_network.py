"""Which brokers are up for each other, on real sockets: who starts, ends, moves and is left."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack

import pytest
import trio

from tests.broker.clusters import wait_until
from tests.broker.peers.brokers import (
    introduce,
    open_one,
    open_pair,
)
from tests.broker.peers.values import heartbeat
from tidemark.broker.config import Address
from tidemark.broker.peers import Peer
from tidemark.protocol.types import NodeId

pytestmark = pytest.mark.usefixtures("wire")


DOES_NOT_CONNECT = "it does not connect to this broker"


async def test_two_brokers_are_up_for_each_other_with_their_incarnations() -> None:
    async with open_one(1, incarnation=5) as one, open_one(2, incarnation=7) as two:
        introduce(one, two)
        await one.wait_told("up", 2, 7)
        await two.wait_told("up", 1, 5)
        assert one.network.up == {2: 7}
        assert two.metrics.up == {1: True}


@pytest.mark.parametrize("first", [1, 2])
async def test_who_starts_first_does_not_matter(first: int) -> None:
    """The one that is there first has tried in vain for a while."""
    async with AsyncExitStack() as stack:
        early = await stack.enter_async_context(open_one(first))
        async with open_one(3 - first) as gone:
            address = gone.network.address
        early.network.set_peers({NodeId(3 - first): Peer(address)})
        await trio.sleep(0.1)
        late = await stack.enter_async_context(open_one(3 - first, listen=address))
        late.know(early)
        await early.wait_up(late)
        await late.wait_up(early)


async def test_one_that_knows_nobody_yet_is_not_up_though_it_is_connected_to() -> None:
    async with open_one(1) as one, open_one(2) as two:
        one.know(two)
        await wait_until(lambda: two.metrics.received_frames.value == 1)
        await wait_until(lambda: one.metrics.received_frames.value == 1)
        assert one.told == two.told == []
        two.know(one)
        await one.wait_up(two)
        await two.wait_up(one)


async def test_a_broker_that_ends_is_down_at_once_and_up_again_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidemark.broker.peers.link.MEND_SECONDS", 1000.0)
    async with open_one(1) as one:
        async with open_one(2, incarnation=1) as two:
            introduce(one, two)
            await one.wait_up(two)
            address = two.network.address
        await one.wait_down(two)
        async with open_one(2, incarnation=2, listen=address) as again:
            again.know(one)
            await one.wait_told("up", 2, 2)
            await again.wait_up(one)
            one.send(again, heartbeat())
            await again.wait_messages(1)
        await one.wait_down(two)
        assert one.told == [("up", 2, 1), ("down", 2), ("up", 2, 2), ("down", 2)]


async def test_a_broker_that_has_moved_is_found_by_what_it_says() -> None:
    """Before the cluster's metadata can say so: that may need this very broker."""
    async with open_one(1) as one:
        async with open_one(2) as two:
            introduce(one, two)
            await one.wait_up(two)
        await one.wait_down(two)
        async with open_one(2, incarnation=2) as moved:
            assert moved.network.address != two.network.address
            moved.know(one)
            await one.wait_up(moved)
            await moved.wait_up(one)


async def test_three_brokers_are_all_up_for_each_other() -> None:
    async with open_one(1) as one, open_one(2) as two, open_one(3) as three:
        introduce(one, two, three)
        await one.wait_up(two, three)
        await two.wait_up(one, three)
        await three.wait_up(one, two)


async def test_a_broker_that_is_no_more_of_the_cluster_is_left() -> None:
    async with open_pair() as (one, two):
        one.network.set_peers({})
        await one.wait_told("down", 2)
        await two.wait_told("down", 1)
        assert not one.metrics.up.get(two.node)
        one.know(two)
        await one.wait_up(two)


async def test_one_that_all_others_have_left_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def said() -> list[str]:
        return [each.message for each in caplog.records if each.levelno == logging.ERROR]

    async with open_one(1) as one, open_one(2) as two, open_one(3) as three:
        introduce(one, two, three)
        await one.wait_up(two, three)
        one.network.registered()
        two.know(three)
        await one.wait_down(two)
        assert not said(), "one that knows nothing of it may be late itself"
        three.know(two)
        await wait_until(lambda: bool(said()))
        await one.wait_down(two, three)
        (told,) = said()
        assert "broker 1 was removed from the cluster" in told
        assert "knows of no broker 1" in told
        assert "Stop it." in told
        introduce(two, one)
        await one.wait_up(two)
        assert len(said()) == 1


async def test_one_that_is_starting_takes_nobody_for_a_stranger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It belongs to the cluster, and has not read yet who else does."""
    async with open_one(1) as one, open_one(2) as two:
        one.network.registered()
        one.know(two)
        await wait_until(lambda: one.metrics.received_frames.value == 1)
        assert "was removed" not in caplog.text
        two.know(one)
        await one.wait_up(two)


async def test_one_that_is_not_registered_yet_is_no_stranger_for_that(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_one(1) as one, open_one(2) as two:
        one.know(two)
        await wait_until(lambda: one.network.trouble_with(two.node) == DOES_NOT_CONNECT)
        two.know(one)
        await one.wait_up(two)
        one.network.registered()
        await two.wait_up(one)
    assert "was removed" not in caplog.text


async def test_names_are_resolved() -> None:
    async with open_one(1) as one, open_one(2) as two:
        port = two.network.address.port
        one.network.set_peers({two.node: Peer(Address("localhost", port))})
        two.know(one)
        await one.wait_up(two)


async def test_what_is_no_name_is_an_address_that_cannot_be_reached() -> None:
    async with open_one(1) as one, open_one(2) as two:
        one.network.set_peers({two.node: Peer(Address("two..example", 9093))})
        await wait_until(lambda: "no host's name" in one.network.trouble_with(two.node))
        introduce(one, two)
        await one.wait_up(two)
