"""Belonging to the cluster: a broker registers at every start, and takes in others that do.

A registration says where this start of the broker is reached. It goes to the leader of the metadata
by any broker that answers. Nothing else is learned by it than that this broker's view of the
metadata is current once it has reached the version in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import trio

from tidemark.broker.metadata.introduction import (
    PATIENCE_SECONDS,
    Nagging,
    check_taken,
    for_good,
    join_request,
    registration,
)
from tidemark.broker.metadata.metadata_leader import Cluster
from tidemark.broker.metadata.reception import CALL_SECONDS, Connections, Reception, awaited
from tidemark.broker.peers.asking import Calls
from tidemark.broker.peers.hello import metadata_of
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import FoundCluster, RegisterBroker
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse, PeerBroker
from tidemark.protocol.types import NodeId


class Network(Calls, Connections, Protocol):
    """The connections to the other brokers."""


class Voters(Protocol):
    """Who votes on the metadata, as far as this broker knows."""

    def __call__(self) -> Sequence[NodeId]: ...


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
        nagging = Nagging(PATIENCE_SECONDS)
        while True:
            try:
                version = await self._register_once(found)
            except RequestError as error:
                nagging.about("broker %s is not registered yet: %s", self._own.node_id, error)
                await nagging.pause()
            else:
                await self._wait_applied(version, nagging)
                return

    async def _register_once(self, found: Callable[[ClusterState], FoundCluster]) -> int:
        """The version that has the registration."""
        if self._cluster.leads:
            await self._register_here(found)
            return self._cluster.state.version
        leader = self._cluster.leader
        request = join_request(self._own, self._cluster_id)
        if leader is None or leader not in self._calls.up:
            raise await self._register_by_address(request)
        with trio.move_on_after(CALL_SECONDS):
            answered = await self._calls.call(leader, request, JoinResponse)
            check_taken(self._own, answered)
            return answered.metadata_version
        raise _too_slow(f"broker {leader}, which leads the cluster's metadata, does not answer")

    async def _register_here(self, found: Callable[[ClusterState], FoundCluster]) -> None:
        # What was given up may have been carried out by the time that it is decided anew.
        def next_step(state: ClusterState) -> FoundCluster | RegisterBroker:
            return found(state) if state.cluster_id is None else registration(self._own, state)

        with trio.move_on_after(CALL_SECONDS):
            try:
                if self._cluster.state.cluster_id is None:
                    await self._cluster.propose(next_step)
                await self._cluster.propose(next_step)
            except RequestError as error:
                raise for_good(self._own, error) from error
            return
        raise _too_slow("too few of those who vote on the cluster's metadata have stored that")

    async def _wait_applied(self, version: int, nagging: Nagging) -> None:
        while True:
            with trio.move_on_after(PATIENCE_SECONDS):
                await self._cluster.wait_version(version)
                return
            nagging.about(
                "broker %s is registered, and waits for what the cluster has decided before: "
                "version %s of its metadata is here, and it is to be %s (%s)",
                self._own.node_id,
                self._cluster.state.version,
                version,
                self._whence(),
            )

    def _whence(self) -> str:
        """Where the metadata come from, in a few words."""
        leader = self._cluster.leader
        if leader is None:
            return self._cluster.why_leaderless
        if leader == self._own.node_id:
            return "this broker leads them"
        if leader not in self._calls.up:
            return f"broker {leader} leads them: {self._calls.trouble_with(leader)}"
        return f"broker {leader} leads them, and is connected"

    async def _register_by_address(self, request: JoinRequest) -> RequestError:
        """Why it does not count yet. If it was taken, the others connect to this broker, and it
        registers with the leader as always."""
        answered = None if self._reception is None else await self._reception.ask(request)
        if answered is None or answered.error_code == ErrorCode.NOT_CONTROLLER:
            why = awaited(self._own.node_id, self._voters(), self._calls)
        else:
            check_taken(self._own, answered)
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


def _too_slow(why: str) -> RequestError:
    return RequestError(ErrorCode.REQUEST_TIMED_OUT, why)
