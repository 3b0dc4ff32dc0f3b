"""How a broker introduces itself to its cluster at every start, and what it makes of the answer."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from typing import Final

import trio

from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.peers.hello import endpoints_of
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import RegisterBroker
from tidemark.partitions.state_machines.cluster_values import BrokerAddress, BrokerMetadata
from tidemark.partitions.storage.state_db import BrokerRun
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse
from tidemark.protocol.types import NodeId

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 0.05
_RETRY_SECONDS_MAX: Final = 1.0
PATIENCE_SECONDS: Final = 5.0
"""After so long without an answer, and every so often from then on, the log says why."""
_FINAL: Final = frozenset(
    {
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REQUEST,
    }
)


def describe_own(
    settings: BrokerSettings, run: BrokerRun, listeners: Mapping[str, Address], peer: Address
) -> BrokerMetadata:
    """This start of this broker, as it introduces itself to the others.

    The addresses are those bound. A listener on every interface is shown to other brokers' clients
    at the host that the other brokers use, for there is no better guess.
    """
    host = socket.gethostname() if peer.is_wildcard else peer.host
    return BrokerMetadata(
        node_id=NodeId(settings.node_id),
        directory_id=run.directory_id,
        incarnation=run.incarnation,
        listeners={
            name: BrokerAddress(host if address.is_wildcard else address.host, address.port)
            for name, address in listeners.items()
        },
        peer=BrokerAddress(host, peer.port),
        rack=settings.broker_rack,
    )


def registration(own: BrokerMetadata, state: ClusterState) -> RegisterBroker:
    """The command that makes a broker known as it is now."""
    return RegisterBroker(
        at_version=state.version,
        node_id=own.node_id,
        directory_id=own.directory_id,
        incarnation=own.incarnation,
        listeners=own.listeners,
        peer=own.peer,
        rack=own.rack,
    )


def join_request(own: BrokerMetadata, cluster_id: str | None) -> JoinRequest:
    return JoinRequest(
        cluster_id=cluster_id,
        node_id=own.node_id,
        directory_id=own.directory_id,
        incarnation=own.incarnation,
        rack=own.rack,
        endpoints=endpoints_of(own.peer, own.listeners),
    )


def check_taken(own: BrokerMetadata, answered: JoinResponse) -> None:
    """Raises for a refusal: `StorageError` for one that trying again will not change."""
    if answered.error_code != ErrorCode.NONE:
        error = RequestError(ErrorCode(answered.error_code), answered.error_message)
        raise for_good(own, error)


def for_good(own: BrokerMetadata, error: RequestError) -> RequestError | StorageError:
    if error.code not in _FINAL:
        return error
    return StorageError(f"the cluster refuses broker {own.node_id}: {error.message}")


class Nagging:
    """Pauses that grow, and a log line now and then."""

    def __init__(self, patience_seconds: float) -> None:
        self._pause = _RETRY_SECONDS
        self._next = trio.current_time() + patience_seconds

    def about(self, text: str, *values: object) -> None:
        if trio.current_time() >= self._next:
            logger.warning(text, *values)
            self._next = trio.current_time() + PATIENCE_SECONDS

    async def pause(self) -> None:
        await trio.sleep(self._pause)
        self._pause = min(2 * self._pause, _RETRY_SECONDS_MAX)
