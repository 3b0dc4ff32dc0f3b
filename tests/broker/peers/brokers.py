"""Several brokers' networks in one trio run, on loopback, and what each of them is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from random import Random
from uuid import UUID

import trio
from trio.abc import Stream

from tests.client.security.tls_proxy import CERTIFICATES
from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.metrics.peer_counts import PeerMetrics
from tidemark.broker.network.reactor import Reactor
from tidemark.broker.network.turn import Turn
from tidemark.broker.peers import Peer, PeerNetwork, bind_peers, joining, open_peer_network
from tidemark.broker.peers.calls import PeerHandler
from tidemark.broker.peers.hello import HostPort, hello_to
from tidemark.broker.peers.peer_tls import peer_tls
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.partitions.state_machines.cluster_values import BrokerAddress, BrokerMetadata
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse
from tidemark.protocol.peer_frames import encode_peer_request
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

CLUSTER = "cluster"
TLS = BrokerSettings(
    peer_ssl_certificate_location=CERTIFICATES / "localhost.pem",
    peer_ssl_ca_location=CERTIFICATES / "ca.pem",
)
PLAIN = BrokerSettings()
_WAIT_SECONDS_MAX = 30


class Wire:
    """How brokers speak where a test does not say it, which the fixture `wire` decides."""

    settings = PLAIN


def directory(node: int) -> UUID:
    return UUID(int=1000 + node)


class Broker:
    """One network with its reactor. It is its own `PeerEvents`."""

    def __init__(self, node: int) -> None:
        self.node = NodeId(node)
        self.told: list[tuple[object, ...]] = []
        self.messages: list[PeerMessage] = []
        self.metrics = PeerMetrics()
        self.turn = Turn()
        self.network: PeerNetwork
        self.in_turn = True
        self._changed = trio.Event()

    def peer_up(self, node: NodeId, incarnation: int) -> None:
        self._tell("up", node, incarnation)

    def peer_down(self, node: NodeId) -> None:
        self._tell("down", node)

    def receive(self, source: NodeId, messages: Sequence[PeerMessage]) -> None:
        assert source in self.network.up
        self.messages += messages
        self._tell("received", source)

    def _tell(self, *event: object) -> None:
        self.in_turn &= self.turn.is_open
        if event[0] != "received":
            self.told.append(event)
        self._changed.set()

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Until it holds; it is looked at whenever something has been told."""
        with trio.fail_after(_WAIT_SECONDS_MAX):
            while not condition():
                self._changed = trio.Event()
                await self._changed.wait()

    async def wait_told(self, *event: object) -> None:
        await self.wait(lambda: event in self.told)

    async def wait_up(self, *others: Broker) -> None:
        await self.wait(lambda: all(other.node in self.network.up for other in others))

    async def wait_down(self, *others: Broker) -> None:
        await self.wait(lambda: not any(other.node in self.network.up for other in others))

    async def wait_reconnected(self, other: Broker) -> None:
        """Until it is told for a second time that `other` is up."""
        await self.wait(lambda: [event[:2] for event in self.told].count(("up", other.node)) == 2)

    async def wait_messages(self, count: int) -> None:
        await self.wait(lambda: len(self.messages) >= count)

    def send(self, to: Broker, *messages: PeerMessage) -> None:
        self.turn.run(lambda: self.network.send({to.node: messages}))

    def know(self, *others: Broker) -> None:
        """Be told by the cluster who its brokers are."""
        self.network.set_peers({other.node: other.as_peer() for other in (self, *others)})

    def as_peer(self) -> Peer:
        return Peer(self.network.address, directory(self.node))

    @property
    def address(self) -> tuple[str, int]:
        return (self.network.address.host, self.network.address.port)


@asynccontextmanager
async def open_one(
    node: int,
    *,
    cluster_id: str | None = CLUSTER,
    incarnation: int = 1,
    directory_id: UUID | None = None,
    handlers: Mapping[type[Message], PeerHandler] | None = None,
    listen: Address | None = None,
    frame_bytes_max: int = 101 * 1024 * 1024,
    speaks: BrokerSettings | None = None,
) -> AsyncIterator[Broker]:
    broker = Broker(node)
    tls = peer_tls(speaks or Wire.settings)
    bound = bind_peers(listen or Address("127.0.0.1", 0), tls=tls)
    own = BrokerMetadata(
        node_id=broker.node,
        directory_id=directory_id or directory(node),
        incarnation=incarnation,
        listeners={"PLAINTEXT": BrokerAddress("127.0.0.1", 9092)},
        peer=BrokerAddress(bound.advertised.host, bound.advertised.port),
        rack=None,
    )
    reactor = Reactor(broker.turn)
    async with trio.open_nursery() as tasks:
        tasks.start_soon(reactor.run)
        async with open_peer_network(
            bound,
            own,
            events=broker,
            handlers=handlers or {},
            reactor=reactor,
            turn=broker.turn,
            metrics=broker.metrics,
            rng=Random(node),
            frame_bytes_max=frame_bytes_max,
        ) as broker.network:
            if cluster_id is not None:
                broker.network.enter(cluster_id)
            yield broker
        assert broker.in_turn
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def open_pair() -> AsyncIterator[tuple[Broker, Broker]]:
    """Two brokers that are up for each other."""
    async with open_one(1) as one, open_one(2) as two:
        introduce(one, two)
        await one.wait_up(two)
        await two.wait_up(one)
        yield one, two


def introduce(*brokers: Broker) -> None:
    for broker in brokers:
        broker.know(*brokers)


async def raw(broker: Broker) -> Stream:
    """A connection of nobody in particular, who speaks as brokers do."""
    plain, tls = await trio.open_tcp_stream(*broker.address), peer_tls(Wire.settings)
    if tls is None:
        return plain
    # As most do, it hangs up without a word.
    return trio.SSLStream(plain, tls.value.dialing, https_compatible=True)


async def ask_to_join(address: HostPort, request: JoinRequest) -> JoinResponse:
    """As a broker would that speaks as the others do."""
    return await joining.ask_to_join(address, request, peer_tls(Wire.settings))


async def read_to_end(stream: Stream) -> bytes:
    """What comes until the other side hangs up, in order or not."""
    received = b""
    with suppress(trio.BrokenResourceError):
        while data := await stream.receive_some():
            received += data
    return received


def hello_of(node: int, to: Broker) -> bytes:
    """The frame by which a broker that is not there would introduce itself."""
    own = BrokerMetadata(
        node_id=NodeId(node),
        directory_id=directory(node),
        incarnation=1,
        listeners={},
        peer=BrokerAddress("127.0.0.1", 1),
        rack=None,
    )
    (frame,) = encode_peer_request(hello_to(to.node, own, CLUSTER), 1, 1)
    assert isinstance(frame, bytes)
    return frame
