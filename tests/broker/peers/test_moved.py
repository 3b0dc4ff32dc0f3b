"""Brokers that have all moved find each other once one of them asks another."""

from uuid import UUID

import pytest
import trio

from tests.broker.peers.brokers import CLUSTER, Broker, ask_to_join, directory, open_one
from tidemark.broker.config import Address
from tidemark.broker.peers import Peer
from tidemark.protocol.messages.peer.hello import PeerEndpoint
from tidemark.protocol.messages.peer.join import JoinRequest
from tidemark.protocol.types import NodeId

pytestmark = pytest.mark.usefixtures("wire")

NOBODY = Address("127.0.0.1", 1)


def join_of(broker: Broker, *, cluster_id: str = CLUSTER, of: UUID | None = None) -> JoinRequest:
    host, port = broker.address
    return JoinRequest(
        cluster_id=cluster_id,
        node_id=broker.node,
        directory_id=of or directory(broker.node),
        incarnation=1,
        rack=None,
        endpoints=[PeerEndpoint(name="", host=host, port=port)],
    )


def know_of_each_other_elsewhere(one: Broker, two: Broker) -> None:
    peers = {NodeId(node): Peer(NOBODY, directory(node)) for node in (1, 2)}
    one.network.set_peers(peers)
    two.network.set_peers(peers)


async def test_who_asks_to_be_known_is_connected_to_where_it_says() -> None:
    async with open_one(1) as one, open_one(2) as two:
        know_of_each_other_elsewhere(one, two)
        await ask_to_join(two.network.address, join_of(one))
        await one.wait_up(two)
        await two.wait_up(one)


@pytest.mark.parametrize("lie", ["another cluster", "another directory"])
async def test_who_is_not_the_broker_that_is_known_is_not_believed(lie: str) -> None:
    async with open_one(1) as one, open_one(2) as two:
        know_of_each_other_elsewhere(one, two)
        if lie == "another cluster":
            request = join_of(one, cluster_id="another")
        else:
            request = join_of(one, of=UUID(int=77))
        await ask_to_join(two.network.address, request)
        await trio.sleep(0.3)
        assert not two.network.up
        assert two.network.trouble_with(NodeId(1)).startswith("it cannot be reached")
