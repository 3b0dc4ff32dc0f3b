"""TCP as it is within one machine that never makes anybody wait: sockets of another kind.

What is sent on the loopback has arrived when the kernel finds time for it, mostly at once. Between
AF_UNIX sockets it has arrived when the call returns. So these stand in for TCP's: they have ports,
and take its options, which mean nothing here.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final
from unittest.mock import patch

_FIRST_PORT: Final = 20_000
_HOST: Final = "127.0.0.1"


class NearSocket(socket.socket):
    """A socket that takes itself for one of TCP."""

    ports = count(_FIRST_PORT)

    def __init__(
        self,
        family: int = socket.AF_INET,
        type: int = socket.SOCK_STREAM,  # as `socket.socket`
        proto: int = 0,
        fileno: int | None = None,
    ) -> None:
        is_tcp = family in (-1, socket.AF_INET) and bool(type & socket.SOCK_STREAM or type == -1)
        super().__init__(socket.AF_UNIX if is_tcp else family, type, 0 if is_tcp else proto, fileno)
        self._is_tcp = is_tcp

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET if self._is_tcp else super().family

    def bind(self, address: Any) -> None:  # Any: as `socket.socket`
        super().bind(_name(address[1] or next(NearSocket.ports)))

    def connect(self, address: Any) -> None:
        super().connect(_name(address[1]))

    def connect_ex(self, address: Any) -> int:
        return int(super().connect_ex(_name(address[1])))

    def getsockname(self) -> Any:
        return _address(super().getsockname())

    def getpeername(self) -> Any:
        return _address(super().getpeername())

    def accept(self) -> tuple[socket.socket, Any]:
        accepted, _ = super().accept()
        return accepted, (_HOST, 0)

    def setsockopt(self, level: int, *option: Any) -> None:
        if level == socket.SOL_SOCKET:
            super().setsockopt(level, *option)

    def getsockopt(self, level: int, *option: Any) -> Any:
        return super().getsockopt(level, *option) if level == socket.SOL_SOCKET else 0


def _name(port: int) -> bytes:
    return b"\0tidemark-%d-%d" % (os.getpid(), port)


def _address(name: Any) -> tuple[str, int]:
    return _HOST, int(name.rpartition(b"-")[2]) if name else 0


@contextmanager
def near_sockets() -> Iterator[None]:
    """Whoever asks for a TCP socket in this block gets such a one."""
    NearSocket.ports = count(_FIRST_PORT)
    with patch.object(socket, "socket", NearSocket):
        yield
