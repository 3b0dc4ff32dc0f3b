"""TLS in front of a broker that has none, as people put it there."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

CERTIFICATES: Final = Path(__file__).parent / "certificates"
_CHUNK: Final = 256 * 1024


class TlsProxy:
    """Listens on `port`; hands on to `target` once that is set."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.target: tuple[str, int] | None = None
        self.seen: list[str] = []
        """The names in the certificates that clients have shown."""

    @property
    def bootstrap(self) -> str:
        return f"localhost:{self.port}"

    async def serve(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        assert self.target is not None
        try:
            await stream.do_handshake()
            if shown := stream.getpeercert():
                self.seen.append(dict(entry[0] for entry in shown["subject"])["commonName"])
            broker = await trio.open_tcp_stream(*self.target)
            async with broker, trio.open_nursery() as nursery:
                nursery.start_soon(_pump, stream, broker, nursery.cancel_scope)
                nursery.start_soon(_pump, broker, stream, nursery.cancel_scope)
        except* (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            pass
        finally:
            await trio.aclose_forcefully(stream)


async def _pump(source: trio.abc.Stream, sink: trio.abc.Stream, done: trio.CancelScope) -> None:
    while data := await source.receive_some(_CHUNK):
        await sink.send_all(data)
    done.cancel()


@asynccontextmanager
async def open_tls_proxy(*, asks_for: Path | None = None) -> AsyncIterator[TlsProxy]:
    """A proxy on localhost. `asks_for`: clients have to show a certificate of this CA."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=asks_for)
    context.load_cert_chain(CERTIFICATES / "localhost.pem")
    if asks_for is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    listeners = await trio.open_ssl_over_tcp_listeners(0, context, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        listener = listeners[0].transport_listener
        assert isinstance(listener, trio.SocketListener)
        proxy = TlsProxy(listener.socket.getsockname()[1])
        nursery.start_soon(trio.serve_listeners, proxy.serve, listeners)
        yield proxy
        nursery.cancel_scope.cancel()
