"""Asking whoever leads the cluster's metadata: it may be nobody for a while, or somebody else soon.

A question goes to the broker that is known to lead, if there is a connection with it; an answer
that it does not lead, or none, has the next leader asked. What may have been carried out is asked
again only if that does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, overload

import trio

from tidemark.broker.peers.asking import Calls
from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_commands import Command
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.forward import (
    ForwardRequest,
    ForwardResponse,
    ProposeRequest,
    ProposeResponse,
)
from tidemark.protocol.types import NodeId

WAIT_SECONDS_MIN: Final = 5.0
"""However little a client asks for: an election may have to be waited out."""
WAIT_SECONDS_MAX: Final = 60.0
_RETRY_SECONDS: Final = 0.05


class Cluster(Protocol):
    """The cluster's metadata on this broker."""

    @property
    def state(self) -> ClusterState: ...

    @property
    def leads(self) -> bool:
        """Whether this broker may change them."""
        ...

    @property
    def leader(self) -> NodeId | None: ...

    @property
    def why_leaderless(self) -> str:
        """Why no leader is known here, in a sentence."""
        ...

    async def propose(self, decide: Callable[[ClusterState], Command]) -> Applied: ...

    async def wait_version(self, version: int) -> None:
        """Until the state here is of that version, or a later one."""
        ...


class MetadataLeader:
    """The broker that leads the metadata, whichever it is, as others ask it."""

    def __init__(self, cluster: Cluster, calls: Calls) -> None:
        self._cluster = cluster
        self._calls = calls

    @overload
    async def ask(
        self, request: ForwardRequest, seconds: float, *, may_repeat: bool
    ) -> ForwardResponse | None: ...
    @overload
    async def ask(
        self, request: ProposeRequest, seconds: float, *, may_repeat: bool
    ) -> ProposeResponse | None: ...
    async def ask(
        self, request: ForwardRequest | ProposeRequest, seconds: float, *, may_repeat: bool
    ) -> ForwardResponse | ProposeResponse | None:
        """The leader's answer, `None` if this broker leads. Raises `RequestError`."""
        is_sent = False
        with trio.move_on_after(seconds):
            while not self._cluster.leads:
                leader = self._cluster.leader
                if leader is not None and leader in self._calls.up:
                    is_sent = True
                    answered = await self._call(leader, request, may_repeat=may_repeat)
                    is_sent = False
                    if answered is not None:
                        return answered
                await trio.sleep(_RETRY_SECONDS)
            return None
        if is_sent:
            raise unknown_outcome()
        raise RequestError(ErrorCode.NOT_CONTROLLER, self._cluster.why_leaderless)

    async def _call(
        self, leader: NodeId, request: ForwardRequest | ProposeRequest, *, may_repeat: bool
    ) -> ForwardResponse | ProposeResponse | None:
        """What that broker says; `None` if the leader, whoever it is now, has to be asked again."""
        answered: ForwardResponse | ProposeResponse
        try:
            if isinstance(request, ForwardRequest):
                answered = await self._calls.call(leader, request, ForwardResponse)
            else:
                answered = await self._calls.call(leader, request, ProposeResponse)
        except RequestError as error:
            if error.code is not ErrorCode.NETWORK_EXCEPTION:
                raise
            if not may_repeat:
                raise unknown_outcome() from error
            return None
        if answered.error_code == ErrorCode.NOT_CONTROLLER:
            return None
        if answered.error_code != ErrorCode.NONE:
            raise RequestError(ErrorCode(answered.error_code), answered.error_message)
        return answered


def unknown_outcome() -> RequestError:
    return RequestError(
        ErrorCode.REQUEST_TIMED_OUT,
        "the broker that leads the cluster's metadata did not answer; whether the change was made, "
        "only looking will tell",
    )
