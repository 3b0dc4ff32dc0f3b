"""What stays on the machine is not paced; what leaves it goes as the host has it."""

import errno
import logging
import socket
from collections.abc import Iterator

import pytest
import trio

from tests.broker.clusters import wait_until
from tidemark.broker.metrics.peer_counts import PeerEnd, PeerMetrics
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.reactor import Reactor
from tidemark.broker.network.same_machine import is_same_machine, send_unpaced_if_near
from tidemark.broker.network.turn import Turn
from tidemark.broker.peers.frame_socket import FrameSocket, SocketServices
from tidemark.testing import Cluster, open_cluster

_NAME_BYTES = 16


class _Nobody:
    """Whose socket it is does not matter here."""

    def take(self, frame: memoryview) -> None: ...
    def ended(self, end: PeerEnd, reason: str) -> None: ...


@pytest.fixture(params=["127.0.0.1", "127.0.0.2", "::1"])
def connected(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A socket that is connected to an address of this machine."""
    host: str = request.param
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        try:
            listening.bind((host, 0))
        except OSError:
            pytest.skip(f"there is no {host} here")
        listening.listen()
        with socket.create_connection(listening.getsockname()[:2]) as client:
            yield client


def _control_of(connected: socket.socket) -> bytes:
    name = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_BYTES)
    return name.rstrip(b"\0")


def _controls_by_peer(cluster: Cluster) -> dict[object, bytes]:
    sockets = [connection._socket for connection in cluster.broker.connections._open]
    plain = [each for each in sockets if isinstance(each, socket.socket)]
    return {each.getpeername(): _control_of(each) for each in plain}


def test_what_brokers_of_one_machine_tell_each_other_is_not_paced(connected: socket.socket) -> None:
    turn, logger = Turn(), logging.getLogger(__name__)
    services = SocketServices(Reactor(turn), turn, PeerMetrics(), OddEvents(logger), logger)
    frames = FrameSocket(connected, _Nobody(), services)
    assert _control_of(connected) == b"reno"
    frames.close(PeerEnd.STOPPING, "")


@pytest.mark.parametrize(
    ("own", "peer", "is_same"),
    [
        ("10.0.0.5", "10.0.0.5", True),
        ("127.0.0.1", "127.0.0.3", True),
        ("fd00::5", "fd00::5", True),
        ("10.0.0.5", "10.0.0.6", False),
        ("10.0.0.5", "1.127.0.1", False),
        ("fd00::5", "fd00::6", False),
    ],
)
def test_what_leaves_the_machine_is_as_the_host_has_it(own: str, peer: str, is_same: bool) -> None:
    assert is_same_machine(own, peer) == is_same


def test_a_connection_that_has_failed_is_left_alone() -> None:
    with socket.socket() as never:
        before = _control_of(never)
        send_unpaced_if_near(never)
        assert _control_of(never) == before


async def test_what_a_broker_sends_to_a_reader_beside_it_is_not_paced() -> None:
    async with open_cluster() as cluster:
        host, _, port = cluster.bootstrap.rpartition(":")
        async with await trio.open_tcp_stream(host, int(port)) as reader:
            own = reader.socket.getsockname()
            await wait_until(lambda: own in _controls_by_peer(cluster))
            assert _controls_by_peer(cluster)[own] == b"reno"


def test_where_the_choice_is_not_offered_it_goes_as_the_host_has_it() -> None:
    class Emulated(socket.socket):
        def setsockopt(self, *_: object) -> None:
            raise OSError(errno.ENOPROTOOPT, "Protocol not available")

    with socket.create_server(("127.0.0.1", 0)) as listening, Emulated() as client:
        client.connect(listening.getsockname())
        send_unpaced_if_near(client)
