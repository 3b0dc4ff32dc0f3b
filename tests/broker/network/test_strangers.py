"""Who has yet to prove who it is, and what it may do to others meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import pack
from threading import Event
from typing import Final

import pytest
import trio
import trio.testing

from tests.broker.network.logging_in import USERS, session
from tests.broker.network.tls import SECONDS_MAX, metric, until
from tests.broker.nodes import open_node
from tests.system.attacks import Peer
from tidemark.broker.handlers import sasl_authenticate
from tidemark.broker.metrics import BadInput
from tidemark.broker.network.connection import STRANGERS_FRAME_BYTES_MAX
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.network.sasl import Step
from tidemark.protocol.errors import RequestError
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidemark.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidemark.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tidemark.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tidemark.testing import BlockingCluster, open_blocking_cluster

LARGE: Final = MetadataRequest(
    topics=[
        MetadataRequestTopic(name=f"{number:0200}")
        for number in range(2 * STRANGERS_FRAME_BYTES_MAX // 200)
    ],
    allow_auto_topic_creation=False,
)


@pytest.fixture
def guarded() -> Iterator[BlockingCluster]:
    """A broker that asks who one is."""
    with open_blocking_cluster(settings={"users": "bob:b"}) as cluster:
        yield cluster


def begun(frame_bytes: int) -> bytes:
    return pack(">i", frame_bytes)


def test_a_stranger_may_not_announce_a_large_frame(guarded: BlockingCluster) -> None:
    with Peer(guarded.bootstrap) as client:
        client.send(begun(STRANGERS_FRAME_BYTES_MAX + 1))
        assert client.is_closed()
    until(guarded, BadInput.FRAME_TOO_LARGE, 1)


def test_a_strangers_name_may_be_as_long_as_any(guarded: BlockingCluster) -> None:
    asked = ApiVersionsRequest(client_software_name="s" * 10_000, client_software_version="1")
    with Peer(guarded.bootstrap) as client:
        client.send(encode_request(asked, 3, 7, "c" * 0x7FFF))
        client.read(asked, 3, ApiVersionsResponse)


def test_who_is_known_may_send_what_is_large_and_need_not_wait(guarded: BlockingCluster) -> None:
    """All of it at once: what follows an authentication is looked at once that is over."""
    handshake = SaslHandshakeRequest(mechanism="PLAIN")
    proof = SaslAuthenticateRequest(auth_bytes=b"\0bob\0b")
    with Peer(guarded.bootstrap) as client:
        client.send(
            b"".join(
                encode_request(request, version, 7, "c")
                for request, version in ((handshake, 1), (proof, 2), (LARGE, 9))
            )
        )
        client.read(handshake, 1, SaslHandshakeResponse)
        assert not client.read(proof, 2, SaslAuthenticateResponse).error_code
        assert len(client.read(LARGE, 9, MetadataResponse).topics) == len(LARGE.topics or ())
    assert not metric(guarded, BadInput.NOT_AUTHENTICATED)


class Slow:
    """An authentication that takes until it is told to end."""

    def __init__(self) -> None:
        self.may_end = Event()
        self.messages = list[bytes]()

    def step(self, message: bytes) -> Step:
        self.messages.append(message)
        self.may_end.wait(SECONDS_MAX)
        return Step(b"", None)


async def test_a_long_message_is_not_looked_into(tmp_path: Path) -> None:
    exchange, client = Slow(), session()
    exchange.may_end.set()
    async with open_node(tmp_path, users=USERS) as node:
        for size in (sasl_authenticate.MESSAGE_BYTES_MAX, sasl_authenticate.MESSAGE_BYTES_MAX + 1):
            client.exchange = exchange
            request = SaslAuthenticateRequest(auth_bytes=bytes(size))
            try:
                await sasl_authenticate.handle(node, request, RequestContext(2, "test", client))
            except RequestError:
                assert size > sasl_authenticate.MESSAGE_BYTES_MAX
                assert client.exchange is None
        assert [len(each) for each in exchange.messages] == [sasl_authenticate.MESSAGE_BYTES_MAX]


async def test_strangers_leave_threads_to_others(tmp_path: Path) -> None:
    exchange = Slow()
    async with open_node(tmp_path, users=USERS) as node:

        async def authenticate() -> None:
            client = session()
            client.exchange = exchange
            request = SaslAuthenticateRequest(auth_bytes=b"x")
            await sasl_authenticate.handle(node, request, RequestContext(2, "test", client))

        threads = int(trio.to_thread.current_default_thread_limiter().total_tokens)
        with trio.fail_after(SECONDS_MAX):
            async with trio.open_nursery() as nursery:
                for _ in range(2 * threads):
                    nursery.start_soon(authenticate)
                await trio.testing.wait_all_tasks_blocked()
                await trio.to_thread.run_sync(exchange.may_end.set)
        assert len(exchange.messages) == 2 * threads
