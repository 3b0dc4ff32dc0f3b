"""Heartbeats to a coordinator that answers as it is told, or not at all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Literal

import pytest
import trio

from tests.client.scripted_peer import ALL_VERSIONS, Peer, coordinator, only_broker, open_peer
from tidemark.client import ClientSettings, ErrorCode, RequestError
from tidemark.client.addresses import Address
from tidemark.client.coordinator import Membership
from tidemark.client.group_coordinator import GroupCoordinator
from tidemark.client.group_settings import GroupSettings
from tidemark.client.network import open_network
from tidemark.client.pool import open_pool
from tidemark.client.retries import Backoff
from tidemark.protocol.messages import api_versions, find_coordinator, heartbeat, metadata

QUICK = ClientSettings(backoff=Backoff(initial_seconds=0.001, max_seconds=0.01))
MEMBER = Membership(generation=5, member_id="m")
Trouble = ErrorCode | Literal["lost", "hangs"]


class Broker:
    """The only one there is. It answers heartbeats with these troubles first."""

    def __init__(self, troubles: list[Trouble]) -> None:
        self.address: Address | None = None
        self.troubles = troubles
        self.generations: list[int] = []
        self.lookups = self.hanging_lookups = self.hanging_connections = 0

    async def serve(self, peer: Peer) -> None:
        while True:
            header, request = await peer.receive()
            match request:
                case api_versions.ApiVersionsRequest():
                    if self.hanging_connections:
                        self.hanging_connections -= 1
                        await trio.sleep_forever()
                    await peer.answer(header, ALL_VERSIONS)
                case metadata.MetadataRequest():
                    await peer.answer(header, only_broker(self.address))
                case find_coordinator.FindCoordinatorRequest():
                    self.lookups += 1
                    if self.hanging_lookups:
                        self.hanging_lookups -= 1
                        await trio.sleep_forever()
                    await peer.answer(header, coordinator(self.address))
                case heartbeat.HeartbeatRequest():
                    self.generations.append(request.generation_id)
                    trouble = self.troubles.pop(0) if self.troubles else ErrorCode.NONE
                    if trouble == "lost":
                        return
                    if trouble == "hangs":
                        await trio.sleep_forever()
                    await peer.answer(header, heartbeat.HeartbeatResponse(error_code=trouble))
                case _:
                    raise AssertionError(request)


@asynccontextmanager
async def open_coordinator(
    broker: Broker, session_timeout_seconds: float = 45
) -> AsyncIterator[GroupCoordinator]:
    settings = GroupSettings(
        group="g", session_timeout_seconds=session_timeout_seconds, heartbeat_seconds=0.1
    )
    with trio.fail_after(10):
        async with open_peer(broker.serve) as address:
            broker.address = address
            async with (
                open_network((address,), QUICK, Random(1)) as network,
                open_pool(QUICK) as pool,
            ):
                yield GroupCoordinator(network, pool, settings)


@pytest.mark.parametrize(
    "trouble",
    [
        "lost",
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
async def test_a_coordinator_that_has_moved_is_found_and_told_of_the_same_generation(
    trouble: Trouble,
) -> None:
    broker = Broker([trouble] * 3)
    async with open_coordinator(broker) as coordinator:
        await coordinator.beat(MEMBER)
    assert broker.generations == [5] * 4
    assert broker.lookups == 4


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ],
)
async def test_what_ends_a_generation_is_raised_at_once(code: ErrorCode) -> None:
    broker = Broker([code])
    async with open_coordinator(broker) as coordinator:
        with pytest.raises(RequestError) as caught:
            await coordinator.beat(MEMBER)
    assert caught.value.code is code
    assert broker.generations == [5]


@pytest.mark.parametrize("trouble", ["lost", ErrorCode.NOT_COORDINATOR])
async def test_nobody_is_told_for_longer_than_a_session_lasts(trouble: Trouble) -> None:
    broker = Broker([trouble] * 100_000)
    async with open_coordinator(broker, session_timeout_seconds=0.3) as coordinator:
        began = trio.current_time()
        with pytest.raises((OSError, RequestError)):
            await coordinator.beat(MEMBER)
        assert trio.current_time() - began > 0.2
    assert len(broker.generations) > 3


async def test_a_coordinator_that_hangs_costs_a_part_of_the_session() -> None:
    """A process that is paused keeps its connections, and says nothing."""
    broker = Broker(["hangs"])
    broker.hanging_lookups = 2
    async with open_coordinator(broker, session_timeout_seconds=2.5) as coordinator:
        began = trio.current_time()
        await coordinator.beat(MEMBER)
        assert trio.current_time() - began < 2.5
    assert broker.generations == [5, 5]
    assert broker.lookups == 4


async def test_a_coordinator_that_takes_no_connection_costs_a_part_of_the_session() -> None:
    broker = Broker([])
    async with open_coordinator(broker, session_timeout_seconds=1.0) as coordinator:
        broker.hanging_connections = 1
        began = trio.current_time()
        await coordinator.beat(MEMBER)
        assert trio.current_time() - began < 1.0
    assert broker.hanging_connections == 0
