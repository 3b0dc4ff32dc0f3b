"""The broker's HTTP side: `/metrics`, `/healthz`, `/readyz`.

hypercorn, starlette and prometheus_client are a third of the broker's start and a sixth of its
memory, and many a broker is never asked. So they are imported, in a thread, when the first client
connects: it waits in the socket's queue for some tenths of a second.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import trio

from tidemark.broker.config import Address
from tidemark.broker.http_connections import (
    FewLines,
    HttpConnections,
    Serve,
    first_of,
    hypercorns,
)
from tidemark.broker.late_imports import repeatable_imports
from tidemark.broker.metrics import Scrape
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.threads import run_in_thread

if TYPE_CHECKING:
    from hypercorn.config import Config
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
_SCRAPES_WAITING_MAX: Final = 16
"""By one connection of HTTP/2 there may be any number, and they stay when it ends."""


class Readiness:
    """Whether this broker serves clients, and if not, why not."""

    def __init__(self) -> None:
        self.waits_for: str | None = "recovery"
        """What keeps it from serving; `None` once it serves."""

    def serving(self) -> None:
        self.waits_for = None

    def stopping(self) -> None:
        self.waits_for = "stopping"


def bind_http(address: Address) -> socket.socket:
    """A listening socket. Raises `OSError` that names an address which is in use or not ours."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    return socket.create_server((address.host, address.port), family=family)


async def serve_http(
    bound: socket.socket,
    scrape: Scrape,
    readiness: Readiness,
    *,
    wait_stop: Callable[[], Awaitable[None]],
) -> None:
    """Serve HTTP on `bound`, which this closes, until `wait_stop` returns or it is cancelled."""
    with bound:
        await trio.lowlevel.wait_readable(bound)
        while (problem := await _serve(bound, scrape, readiness, wait_stop)) is not None:
            logger.warning("HTTP cannot be served yet: %s", problem)
            await trio.sleep(_RETRY_SECONDS)


async def _serve(
    bound: socket.socket,
    scrape: Scrape,
    readiness: Readiness,
    wait_stop: Callable[[], Awaitable[None]],
) -> BaseException | None:
    """Why it is not served; `None` once it was, until the end. There may be no descriptors now."""
    problem: BaseException | None = None
    odd_events = OddEvents(logger)
    try:
        serve = await run_in_thread(_prepare, scrape, readiness, odd_events)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(bound))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(HttpConnections(serve, odd_events).take_all, listener)
            await wait_stop()
            nursery.cancel_scope.cancel()
    except* OSError as errors:
        problem = first_of(errors)
    return problem


def _prepare(scrape: Scrape, readiness: Readiness, odd_events: OddEvents) -> Serve:
    with repeatable_imports():
        config = _hypercorn_config(odd_events)
        application = _application(scrape, readiness)
        return hypercorns(application, config)  # type: ignore[arg-type] # other types, same calls


def _hypercorn_config(odd_events: OddEvents) -> Config:
    from hypercorn.config import Config

    config = Config()
    config.accesslog = None
    config.errorlog = FewLines(odd_events)
    # Without descriptors it says ten times a second that nobody is accepted, each time where.
    logging.getLogger("trio.serve_listeners").setLevel(logging.CRITICAL)
    config.include_server_header = False
    return config


def _application(scrape: Scrape, readiness: Readiness) -> Starlette:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    # One scrape at a time: a second one would only make both slower.
    one_at_a_time = trio.CapacityLimiter(1)

    async def metrics(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        if one_at_a_time.statistics().tasks_waiting >= _SCRAPES_WAITING_MAX:
            return PlainTextResponse("too many ask for them at once\n", status_code=503)
        try:
            page = await run_in_thread(scrape.page, accept, limiter=one_at_a_time)
        except OSError as error:
            # A scrape imports what it needs.
            return PlainTextResponse(f"there are none now: {error}\n", status_code=503)
        return Response(page.body, media_type=page.content_type)

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        if readiness.waits_for is not None:
            return PlainTextResponse(f"not ready: {readiness.waits_for}\n", status_code=503)
        return PlainTextResponse("ready\n")

    pages = {"/metrics": metrics, "/healthz": healthz, "/readyz": readyz}

    async def not_found(_request: Request, _error: Exception) -> Response:
        return PlainTextResponse(f"there are {', '.join(pages)}\n", status_code=404)

    return Starlette(
        routes=[Route(path, page) for path, page in pages.items()],
        exception_handlers={404: not_found},
    )
