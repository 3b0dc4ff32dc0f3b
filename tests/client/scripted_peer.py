"""A peer that says exactly what a test scripts, for what no real broker can be made to say."""

import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import trio

from tidemark.client.addresses import Address
from tidemark.protocol.codec import decode
from tidemark.protocol.frames import RequestHeader, decode_request_header, encode_response
from tidemark.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tidemark.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tidemark.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from tidemark.protocol.registry import APIS
from tidemark.protocol.schema import Message

_API_VERSIONS = 18

ALL_VERSIONS = ApiVersionsResponse(
    api_keys=[
        ApiVersion(api_key=key, min_version=api.min_version, max_version=api.max_version)
        for key, api in APIS.items()
    ]
)


class Peer:
    """One accepted connection, seen from the broker's side."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream

    async def request(self) -> RequestHeader:
        """The next request; its body is not looked at."""
        (length,) = struct.unpack(">i", await self._exactly(4))
        return decode_request_header(await self._exactly(length))[0]

    async def receive(self) -> tuple[RequestHeader, Message]:
        """The next request, decoded."""
        (length,) = struct.unpack(">i", await self._exactly(4))
        frame = await self._exactly(length)
        header, at = decode_request_header(frame)
        return header, decode(APIS[header.api_key].request, header.api_version, frame[at:])

    async def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = await self.stream.receive_some(count - len(data))
            if not more:
                raise trio.EndOfChannel
            data += more
        return data

    async def answer(self, header: RequestHeader, message: Message) -> None:
        await self.stream.send_all(self.encoded(header, message))

    def encoded(self, header: RequestHeader, message: Message) -> bytes:
        parts = encode_response(
            message, APIS[header.api_key], header.api_version, header.correlation_id
        )
        return b"".join(part for part in parts if isinstance(part, bytes))

    async def greet(self) -> None:
        """Answer ApiVersions with everything we speak."""
        header = await self.request()
        assert header.api_key == _API_VERSIONS
        await self.answer(header, ALL_VERSIONS)


def only_broker(address: Address | None) -> MetadataResponse:
    """A cluster of one broker, which is there."""
    assert address is not None
    broker = MetadataResponseBroker(node_id=1, host=address.host, port=address.port)
    return MetadataResponse(brokers=[broker], controller_id=1, topics=[])


def coordinator(address: Address | None) -> FindCoordinatorResponse:
    """That one coordinates the group `g`."""
    assert address is not None
    found = Coordinator(key="g", node_id=1, host=address.host, port=address.port, error_code=0)
    return FindCoordinatorResponse(coordinators=[found])


Script = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def open_peer(script: Script) -> AsyncIterator[Address]:
    """Listen, and run `script` on each connection, which is closed when it returns."""

    async def serve(stream: trio.SocketStream) -> None:
        with suppress(trio.EndOfChannel, trio.BrokenResourceError):
            await script(Peer(stream))

    async with trio.open_nursery() as nursery:
        listen = partial(trio.serve_tcp, host="127.0.0.1")
        listeners = await nursery.start(listen, serve, 0)
        yield Address("127.0.0.1", listeners[0].socket.getsockname()[1])
        nursery.cancel_scope.cancel()
