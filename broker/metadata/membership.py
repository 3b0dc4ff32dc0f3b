"""Belonging to the cluster: a broker registers at every start, and takes in others that do.

A registration says where this start of the broker is reached. It goes to the leader of the metadata
by any broker that answers. Nothing else is learned by it than that this broker's view of the
metadata is current once it has reached the version in the answer.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import trio

from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.metadata.controller import Cluster
from tidemark.broker.metadata.reception import (
    CALL_SECONDS,
    CallAddress,
    Connections,
    Reception,
    awaited,
)
from tidemark.broker.peers.asking import Calls
from tidemark.broker.peers.hello import endpoints_of, metadata_of
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import FoundCluster, RegisterBroker
from tidemark.partitions.state_machines.cluster_values import BrokerAddress, BrokerMetadata
from tidemark.partitions.storage.state_db import BrokerRun
from tidemark.protocol.errors import ErrorCode, ProtocolError, RequestError, StorageError
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse, PeerBroker
from tidemark.protocol.types import NodeId

logger = logging.getLogger(__name__)

_ASIDE_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 0.05
_RETRY_SECONDS_MAX: Final = 1.0
_PATIENCE_SECONDS: Final = 5.0
"""After so long without an answer, and every so often from then on, the log says why."""
_JOIN_PATIENCE_SECONDS: Final = 2.0
"""Somebody sits before a broker's first start, and may have mistyped an address."""
_FINAL: Final = frozenset(
    {
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REQUEST,
    }
)


class Network(Calls, Connections, Protocol):
    """The connections to the other brokers."""


class Voters(Protocol):
    """Who votes on the metadata, as far as this broker knows."""

    def __call__(self) -> Sequence[NodeId]: ...


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
    request, nagging = join_request(own, cluster_id), _Nagging(_JOIN_PATIENCE_SECONDS)
    while True:
        for address in addresses:
            try:
                with trio.fail_after(CALL_SECONDS):
                    answered = await call(address, request)
                _check(own, answered)
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


class Membership:
    """This broker's place in a cluster that it belongs to."""

    def __init__(
        self,
        own: BrokerMetadata,
        cluster_id: str,
        cluster: Cluster,
        calls: Network,
        voters: Voters,
        reception: Reception | None = None,
    ) -> None:
        """`cluster_id` is what the data directory says: the metadata say the same, but not before
        enough voters have met to know what is committed."""
        self._own = own
        self._cluster_id = cluster_id
        self._cluster = cluster
        self._calls = calls
        self._voters = voters
        self._reception = reception

    async def register(self, found: Callable[[ClusterState], FoundCluster]) -> None:
        """Be registered as of this start, and have applied what the cluster had decided by then.

        Returns once that is so, however long it takes. `found` begins a cluster that this broker
        leads and that has not begun yet. Raises `StorageError` if the cluster refuses this broker
        for good.
        """
        nagging = _Nagging(_PATIENCE_SECONDS)
        while True:
            try:
                await self._cluster.wait_version(await self._register_once(found))
            except (RequestError, trio.TooSlowError) as error:
                nagging.about("broker %s is not registered yet: %s", self._own.node_id, error)
                await nagging.pause()
            else:
                return

    async def _register_once(self, found: Callable[[ClusterState], FoundCluster]) -> int:
        """The version that has the registration."""
        if self._cluster.leads:
            try:
                if self._cluster.state.cluster_id is None:
                    await self._cluster.propose(found)
                await self._cluster.propose(lambda state: registration(self._own, state))
            except RequestError as error:
                raise _for_good(self._own, error) from error
            return self._cluster.state.version
        leader = self._cluster.leader
        request = join_request(self._own, self._cluster_id)
        if leader is None or leader not in self._calls.up:
            raise await self._register_by_address(request)
        with trio.fail_after(CALL_SECONDS):
            answered = await self._calls.call(leader, request, JoinResponse)
        _check(self._own, answered)
        return answered.metadata_version

    async def _register_by_address(self, request: JoinRequest) -> RequestError:
        """Why it does not count yet. If it was taken, the others connect to this broker, and it
        registers with the leader as always."""
        answered = None if self._reception is None else await self._reception.ask(request)
        if answered is None or answered.error_code == ErrorCode.NOT_CONTROLLER:
            why = awaited(self._own.node_id, self._voters(), self._calls)
        else:
            _check(self._own, answered)
            peer = self._own.peer
            why = f"the others have yet to connect to it at {peer.host}:{peer.port}"
        return RequestError(ErrorCode.NOT_CONTROLLER, why)

    async def serve_join(self, caller: NodeId | None, request: JoinRequest) -> JoinResponse:
        """Take a broker in, if this one leads the metadata; else ask the one that does."""
        if request.cluster_id not in (None, self._cluster_id):
            raise RequestError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"it belongs to cluster {request.cluster_id}, and this is {self._cluster_id}: "
                "correct its cluster.id or its --join",
            )
        broker = metadata_of(
            request.node_id,
            request.directory_id,
            request.incarnation,
            request.rack,
            request.endpoints,
        )
        if broker is None:
            raise RequestError(ErrorCode.INVALID_REQUEST, "it has no address for other brokers")
        if not self._cluster.leads:
            return await self._pass_on(caller, request)
        await self._cluster.propose(lambda state: registration(broker, state))
        return self._welcome()

    async def _pass_on(self, caller: NodeId | None, request: JoinRequest) -> JoinResponse:
        leader = self._cluster.leader
        # What has been passed on once goes no further: two brokers may each think the other leads.
        is_first_hand = caller is None or caller == request.node_id
        if leader is None or leader not in self._calls.up or not is_first_hand:
            raise RequestError(ErrorCode.NOT_CONTROLLER, "nobody leads the cluster's metadata")
        return await self._calls.call(leader, request, JoinResponse)

    def _welcome(self) -> JoinResponse:
        state = self._cluster.state
        return JoinResponse(
            cluster_id=self._cluster_id,
            metadata_version=state.version,
            node_id=self._own.node_id,
            directory_id=self._own.directory_id,
            brokers=[
                PeerBroker(
                    node_id=broker.node_id,
                    host=broker.peer.host,
                    port=broker.peer.port,
                    directory_id=broker.directory_id,
                )
                for broker in state.brokers.values()
            ],
            voters=tuple(self._voters()),
        )


class _Nagging:
    """Pauses that grow, and a log line now and then."""

    def __init__(self, patience_seconds: float) -> None:
        self._pause = _RETRY_SECONDS
        self._next = trio.current_time() + patience_seconds

    def about(self, text: str, *values: object) -> None:
        if trio.current_time() >= self._next:
            logger.warning(text, *values)
            self._next = trio.current_time() + _PATIENCE_SECONDS

    async def pause(self) -> None:
        await trio.sleep(self._pause)
        self._pause = min(2 * self._pause, _RETRY_SECONDS_MAX)


def _check(own: BrokerMetadata, answered: JoinResponse) -> None:
    """Raises for a refusal: `StorageError` for one that trying again will not change."""
    if answered.error_code != ErrorCode.NONE:
        error = RequestError(ErrorCode(answered.error_code), answered.error_message)
        raise _for_good(own, error)


def _for_good(own: BrokerMetadata, error: RequestError) -> RequestError | StorageError:
    if error.code not in _FINAL:
        return error
    return StorageError(f"the cluster refuses broker {own.node_id}: {error.message}")
