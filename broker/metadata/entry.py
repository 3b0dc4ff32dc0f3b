"""Getting into a cluster: a new broker asks to be taken in at the addresses that it is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import trio

from tidemark.broker.config import Address
from tidemark.broker.metadata.introduction import Nagging, check_taken, join_request
from tidemark.broker.metadata.reception import CALL_SECONDS, CallAddress
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.protocol.errors import ErrorCode, ProtocolError, RequestError, StorageError
from tidemark.protocol.messages.peer.join import JoinResponse

_ASIDE_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 2.0
"""Somebody sits before a broker's first start, and may have mistyped an address."""


async def join(
    own: BrokerMetadata,
    addresses: Iterable[Address],
    call: CallAddress,
    *,
    cluster_id: str | None = None,
) -> JoinResponse:
    """Ask at these addresses, in turn and again and again, until a cluster takes this broker in.

    Raises `StorageError` if one of them refuses it for good.
    """
    addresses = _of_others(own, addresses)
    request, nagging = join_request(own, cluster_id), Nagging(_PATIENCE_SECONDS)
    while True:
        for address in addresses:
            try:
                with trio.fail_after(CALL_SECONDS):
                    answered = await call(address, request)
                check_taken(own, answered)
            except (OSError, ProtocolError, RequestError, trio.TooSlowError) as error:
                nagging.about("not in a cluster yet, and still trying: %s", _why(address, error))
            else:
                return answered
        await nagging.pause()


async def refuse_another_cluster(
    own: BrokerMetadata,
    cluster_id: str,
    addresses: Iterable[Address],
    call: CallAddress,
    *,
    directory: str,
) -> None:
    """Raises `StorageError` if one of these is in another cluster than this broker's directory is.

    Whoever does not answer within a second is let pass: a broker that belongs to a cluster finds
    the others without being told where they are.
    """
    request = join_request(own, cluster_id)
    for address in addresses:
        with trio.move_on_after(_ASIDE_SECONDS):
            try:
                answered = await call(address, request)
            except (OSError, ProtocolError, RequestError):
                continue
            if answered.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID:
                raise StorageError(
                    f"--join {address} leads to another cluster than the data directory "
                    f"{directory} is of: {answered.error_message}. Give this broker an empty "
                    "directory, or the address of a broker of its own cluster"
                )


def _of_others(own: BrokerMetadata, addresses: Iterable[Address]) -> list[Address]:
    """Without this broker's own, which a list that is the same for all brokers has too.

    Raises `StorageError` if nothing is left.
    """
    addresses = list(addresses)
    others = [
        each for each in addresses if (each.host, each.port) != (own.peer.host, own.peer.port)
    ]
    if addresses and not others:
        raise StorageError(
            f"--join {addresses[0]} is this broker's own address: give it another broker's, or "
            "leave --join out to begin a new cluster"
        )
    return others


def _why(address: Address, error: Exception) -> str:
    """Why nobody took this broker in, in a sentence."""
    match error:
        case RequestError(code=ErrorCode.NETWORK_EXCEPTION) | ProtocolError():
            reason = error.message if isinstance(error, RequestError) else error
            return (
                f"what is at {address} does not speak as brokers do among themselves ({reason}). "
                "Is it a port for clients? --join takes what the other broker's ready line has "
                "behind peers="
            )
        case RequestError(message=message):
            return f"the broker at {address} does not take this one in yet: {message}"
        case trio.TooSlowError():
            return f"{address} does not answer"
        case OSError(strerror=str(reason)):
            return f"nobody answers at {address}: {reason}"
    return f"nobody answers at {address}: {error}"
