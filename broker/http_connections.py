"""HTTP's connections: a few at once, and none that the broker's end waits for.

hypercorn's own `serve` takes any number, of which those that begin HTTP/2 and say nothing more stay
for ever; and it sends behind a shield, so who does not read what it has asked for holds up whoever
stops it. So hypercorn is given each connection here, and its socket is closed where it has to end:
that reaches through shields.

And what it raises, as it does for some bytes of a WebSocket, ends that connection, not the broker.
What it logs, often with a traceback, is as many lines as are logged of other odd clients.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from tidemark.broker.network.odd_events import OddEvents

if TYPE_CHECKING:
    from hypercorn.config import Config
    from hypercorn.typing import Framework

CONNECTIONS_MAX: Final = 64

Serve: TypeAlias = Callable[[trio.SocketStream], Awaitable[None]]
"""One connection, until it ends or its socket is closed."""


def hypercorns(application: Framework, config: Config) -> Serve:
    """What serves a connection by HTTP/1.1 or 2."""
    from hypercorn.trio.tcp_server import TCPServer
    from hypercorn.trio.worker_context import WorkerContext
    from hypercorn.typing import ConnectionState
    from hypercorn.utils import wrap_app

    wrapped = wrap_app(application, config.wsgi_max_body_size, "asgi")
    context = WorkerContext(None)

    async def serve(stream: trio.SocketStream) -> None:
        state = ConnectionState({})
        await TCPServer(wrapped, config, context, state, stream)  # type: ignore[arg-type] # it takes both kinds of stream, and says one

    return serve


class FewLines(logging.Logger):
    """hypercorn's."""

    def __init__(self, odd_events: OddEvents) -> None:
        super().__init__("hypercorn", logging.WARNING)  # At INFO it says that it runs.
        self._odd_events = odd_events

    def handle(self, record: logging.LogRecord) -> None:
        is_error = record.exc_info is not None
        self._odd_events.warn("lines of hypercorn", "%s", record.getMessage(), error=is_error)


class HttpConnections:
    """Those of one listener."""

    def __init__(self, serve: Serve, odd_events: OddEvents) -> None:
        self._serve = serve
        self._odd_events = odd_events
        self._open: dict[trio.SocketStream, None] = {}

    async def take_all(self, listener: trio.SocketListener) -> None:
        """For ever."""
        async with trio.open_nursery() as nursery:
            await trio.serve_listeners(self._take, [listener], handler_nursery=nursery)

    async def _take(self, stream: trio.SocketStream) -> None:
        if len(self._open) >= CONNECTIONS_MAX:
            # The oldest makes room: who asks and goes is answered beside any number of others.
            self._close(next(iter(self._open)))
        self._open[stream] = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._close_at_end, stream)
                await self._serve(stream)
                nursery.cancel_scope.cancel()
        except* Exception as errors:  # Whatever it is, only this connection has it.
            error = first_of(errors)
            self._odd_events.warn("failed HTTP connections", "an HTTP connection failed: %r", error)
        finally:
            self._close(stream)

    async def _close_at_end(self, stream: trio.SocketStream) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self._close(stream)

    def _close(self, stream: trio.SocketStream) -> None:
        """Doing it twice is allowed."""
        self._open.pop(stream, None)
        stream.socket.close()


def first_of(errors: BaseException) -> BaseException:
    """Of what a nursery raises: one of them, by itself."""
    while isinstance(errors, BaseExceptionGroup):
        errors = errors.exceptions[0]
    return errors
