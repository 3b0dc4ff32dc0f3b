"""A socket that is connected to another broker."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence
from typing import Final

import trio

from tidemark.broker.peers.hello import HostPort

CONNECT_SECONDS: Final = 1.0


async def connect(addresses: Sequence[HostPort]) -> socket.socket:
    """A non-blocking socket to the first address that can be reached. Raises `OSError`."""
    problem = OSError("no address is known")
    for address in addresses:
        try:
            found = await trio.socket.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM
            )
        except OSError as error:
            problem = error
            continue
        except UnicodeError:  # Python's codec for such names refuses it
            problem = OSError(f"{address.host!r} is no host's name")
            continue
        except RuntimeError as error:  # names are looked up in a thread, and there is none
            problem = OSError(str(error))
            continue
        for family, _, _, _, resolved in found:
            try:
                return await _connect_to(family, resolved)
            except OSError as error:
                problem = error
    raise problem


async def _connect_to(family: int, resolved: tuple[object, ...]) -> socket.socket:
    connecting = socket.socket(family, socket.SOCK_STREAM)
    try:
        connecting.setblocking(False)
        try:
            connecting.connect(resolved)
        except BlockingIOError:
            with trio.move_on_after(CONNECT_SECONDS) as waiting:
                await trio.lowlevel.wait_writable(connecting)
            if waiting.cancelled_caught:
                raise TimeoutError("no answer") from None
            code = connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code)) from None
        if connecting.getsockname() == connecting.getpeername():
            # TCP's simultaneous open, with itself: the port was free, and came up as the local one.
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
    except BaseException:
        connecting.close()
        raise
    return connecting
