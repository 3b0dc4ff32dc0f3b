"""A broker with a listener for TLS, and who speaks to it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from struct import unpack_from
from typing import Final

from tests.client.security.tls_proxy import CERTIFICATES
from tidemark.broker.metrics import BadInput, ConnectionEnd
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages.api_versions import ApiVersionsRequest
from tidemark.testing import BlockingCluster, open_blocking_cluster

CA: Final = str(CERTIFICATES / "ca.pem")
CERTIFICATE: Final = CERTIFICATES / "localhost.pem"
SECONDS_MAX: Final = 20


@contextmanager
def serving(**settings: str) -> Iterator[tuple[BlockingCluster, int]]:
    """A broker that speaks TLS alone, and its port."""
    ours = {
        "listeners": "SSL://localhost:0",
        "ssl.certificate.location": str(CERTIFICATE),
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    with open_blocking_cluster(settings=ours) as cluster:
        yield cluster, int(cluster.bootstrap.rpartition(":")[2])


def request(correlation_id: int, *, client_id: str = "c") -> bytes:
    return encode_request(ApiVersionsRequest(), 0, correlation_id, client_id)


class Answers:
    """What a client receives, as correlation ids."""

    def __init__(self, client: ssl.SSLSocket) -> None:
        self._client = client
        self._data = b""

    def take(self, count: int) -> list[int]:
        return [self._next() for _ in range(count)]

    def _next(self) -> int:
        while len(self._data) < 4 or len(self._data) < 4 + unpack_from(">i", self._data)[0]:
            received = self._client.recv(1 << 12)
            assert received, "the broker hung up"
            self._data += received
        size, correlation_id = unpack_from(">ii", self._data)
        self._data = self._data[4 + size :]
        return int(correlation_id)


def answers(client: ssl.SSLSocket, count: int) -> list[int]:
    """The correlation ids of so many answers, the only ones."""
    return Answers(client).take(count)


def metric(cluster: BlockingCluster, kind: BadInput | ConnectionEnd) -> float:
    broker = cluster._cluster._hosted[1].running
    assert broker is not None
    metrics = broker.connections.metrics
    counts = metrics.bad_input if isinstance(kind, BadInput) else metrics.connections_closed
    return counts[kind].value  # type: ignore[index] # of the one kind or the other


def until(cluster: BlockingCluster, kind: BadInput | ConnectionEnd, count: int) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while metric(cluster, kind) < count:
        assert time.monotonic() < deadline, f"{kind} was counted {metric(cluster, kind)} times"
        time.sleep(0.01)
