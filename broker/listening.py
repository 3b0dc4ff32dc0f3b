"""The sockets that a broker listens on: all of them, or a sentence about those it cannot have."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final, TypeVar

from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.http import bind_http
from tidemark.broker.network.accepting import BoundListener, bind
from tidemark.broker.network.listener_tls import listener_tls
from tidemark.broker.peers import BoundPeerListener, bind_peers
from tidemark.broker.peers.peer_tls import peer_tls
from tidemark.partitions.storage.refusals import was_not_asked
from tidemark.protocol.values import dataclass

_CLIENTS: Final = "--listen"
_PEERS: Final = "--peer-listen"
_HTTP: Final = "--http"

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Listening:
    """Bound, and not yet served."""

    clients: list[BoundListener]
    peers: BoundPeerListener
    http: socket.socket | None


@contextmanager
def open_listening(settings: BrokerSettings) -> Iterator[Listening]:
    """Everything that the settings say to listen on, until the block ends.

    Raises `OSError`, whose `strerror` names every address that is not to be had, and its option:
    two brokers with defaults clash three times; `ConfigError` for a certificate that cannot be
    shown.
    """
    listeners = settings.client_listeners()
    tls = listener_tls(settings) if any(each.speaks_tls for each in listeners) else None
    between_brokers = peer_tls(settings)
    with ExitStack() as sockets:
        binding = _Binding()
        clients = [
            binding.attempt(
                _CLIENTS,
                listener.address,
                partial(bind, listener, tls if listener.speaks_tls else None),
            )
            for listener in listeners
        ]
        peers = binding.attempt(
            _PEERS,
            settings.peer_listen,
            partial(bind_peers, settings.peer_listen, settings.peer_advertise, tls=between_brokers),
        )
        http = None
        if settings.http_listen is not None:
            http = binding.attempt(
                _HTTP, settings.http_listen, partial(bind_http, settings.http_listen)
            )
        for each in (*clients, peers):
            if each is not None:
                sockets.enter_context(each.socket)
        if http is not None:
            sockets.enter_context(http)
        binding.check()
        assert peers is not None
        yield Listening([bound for bound in clients if bound is not None], peers, http)


class _Binding:
    """Tries all, and remembers what went wrong."""

    def __init__(self) -> None:
        self._taken: list[tuple[Address, str]] = []
        self._problem: OSError | None = None

    def attempt(self, option: str, address: Address, bind_it: Callable[[], S]) -> S | None:
        try:
            return bind_it()
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                self._taken.append((address, option))
            elif self._problem is None:
                # Those of name resolution are negative, and have a sentence of their own.
                number = error.errno or 0
                reason = os.strerror(number) if number > 0 else error.strerror
                what = f"cannot listen on {address}: {reason}"
                if not was_not_asked(error):
                    what += f"; choose another with {option}"
                self._problem = OSError(error.errno, what)
            return None

    def check(self) -> None:
        """Raises `OSError` if something is missing."""
        if self._taken:
            are = "are" if len(self._taken) > 1 else "is"
            others = "others" if len(self._taken) > 1 else "another"
            addresses = _listed([str(address) for address, _ in self._taken])
            options = _listed(list(dict.fromkeys(option for _, option in self._taken)))
            raise OSError(
                errno.EADDRINUSE,
                f"{addresses} {are} in use, perhaps by another broker: choose {others} with "
                f"{options}",
            )
        if self._problem is not None:
            raise self._problem


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
