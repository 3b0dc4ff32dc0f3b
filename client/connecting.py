"""Making a connection: to the address, TLS where it is wanted, the versions, and who one is."""

import os
import socket
import ssl

import trio

from tidemark import __version__
from tidemark.client.addresses import NO_HOST_NAME
from tidemark.client.background import open_background
from tidemark.client.connection import Connection
from tidemark.client.security.sasl import refused
from tidemark.client.security.tls import Tls, handshake_errors, wrap
from tidemark.client.settings import ClientSettings
from tidemark.client.wire import Wire
from tidemark.protocol.errors import RequestError


async def serve_connection(
    host: str,
    port: int,
    settings: ClientSettings,
    is_given: bool = True,
    *,
    task_status: trio.TaskStatus[Connection] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Connect, find the versions, and run the connection until it is closed or cancelled.

    For `nursery.start`, which gives the connection back ready for requests. Until then it raises:
    `OSError` if the broker cannot be reached or does not speak the protocol, `RequestError` if it
    does not believe who we are, in one line that names the address, and who has said it if it was
    not given by the user. Afterwards it raises nothing.
    """
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    timeout = settings.connect_timeout_seconds
    whose = "" if is_given else " (the broker's advertised.listeners)"
    sock = await _connect(host, port, address + whose, timeout)
    if settings.tls is not None:
        sock = await _encrypt(sock, settings.tls, host, address, timeout)
    wire = Wire(
        settings.client_id,
        software_version=__version__,
        frame_bytes_max=settings.frame_bytes_max,
        version_max=settings.version_max,
        is_encrypted=settings.tls is not None,
    )
    connection = Connection(
        address, sock, wire, request_timeout_seconds=settings.request_timeout_seconds
    )
    try:
        async with open_background() as nursery:
            nursery.start_soon(connection.read_until_closed)
            nursery.start_soon(connection.write_until_closed)
            nursery.start_soon(connection.close_when_unanswered)
            failure = await _introduce(connection, settings)
            if failure is not None:
                raise failure
            task_status.started(connection)
            await connection.wait_closed()
    finally:
        connection.close()


async def _introduce(
    connection: Connection, settings: ClientSettings
) -> OSError | RequestError | None:
    """Find out which versions both sides speak, and say who one is; what went wrong, if it did."""
    with trio.move_on_after(settings.connect_timeout_seconds):
        try:
            await connection.negotiate()
        except OSError as error:
            return error
        except RequestError as error:
            return ConnectionError(f"{connection.address}: {error}")
        try:
            if settings.sasl is not None:
                await connection.authenticate(settings.sasl)
        except OSError as error:
            return error
        except RequestError as error:
            return refused(connection.address, error)
        return None
    seconds = settings.connect_timeout_seconds
    what = "ApiVersions" if settings.sasl is None else "ApiVersions or SASL"
    return TimeoutError(f"{connection.address}: no answer to {what} in {seconds:g} s")


async def _connect(host: str, port: int, address: str, timeout_seconds: float) -> socket.socket:
    """A connected, non-blocking socket."""
    with trio.move_on_after(timeout_seconds):
        try:
            stream = await trio.open_tcp_stream(host, port)
        except OSError as error:
            raise ConnectionError(f"cannot connect to {address}: {_reason(error)}") from error
        except UnicodeError as error:
            raise ConnectionError(f"cannot connect to {address}: {NO_HOST_NAME}") from error
        # The stream made the choice among the addresses; from here on the socket is read into
        # buffers of our own and written without a checkpoint, which a trio socket does not do.
        sock = socket.socket(fileno=stream.socket.detach())
        sock.setblocking(False)
        return sock
    raise TimeoutError(f"cannot connect to {address}: no answer within {timeout_seconds:g} s")


async def _encrypt(
    sock: socket.socket, tls: Tls, host: str, address: str, timeout_seconds: float
) -> socket.socket:
    """TLS over it. Closes the socket if that cannot be."""
    encrypted = wrap(tls, sock, host)
    try:
        with trio.fail_after(timeout_seconds), handshake_errors(address):
            await _shake_hands(encrypted)
    except trio.TooSlowError:
        encrypted.close()
        raise TimeoutError(
            f"{address}: no TLS handshake within {timeout_seconds:g} s; has this listener TLS?"
        ) from None
    except BaseException:
        encrypted.close()
        raise
    return encrypted


async def _shake_hands(sock: ssl.SSLSocket) -> None:
    while True:
        try:
            return sock.do_handshake()
        except ssl.SSLWantReadError:
            await trio.lowlevel.wait_readable(sock)
        except ssl.SSLWantWriteError:
            await trio.lowlevel.wait_writable(sock)


def _reason(error: BaseException) -> str:
    """The system's words for a failed connection, without the list of every attempt."""
    if isinstance(error, BaseExceptionGroup):
        return _reason(error.exceptions[0])
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    return str(error) if error.__cause__ is None else _reason(error.__cause__)
