"""Who may connect to whom: what a Hello says, and whether it is taken.

A broker is what its disk holds, so it is known by its directory id and, because a process may hang
while its successor already runs, by how many times that directory has been opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from tidemark.broker.peers.versions import OWN, Spoken, nothing_in_common, with_what_to_do
from tidemark.partitions.state_machines.cluster_values import BrokerAddress, BrokerMetadata
from tidemark.protocol.messages.peer.hello import HelloRequest, HelloResponse, PeerEndpoint
from tidemark.protocol.messages.peer.versions import FIRST_VERSION, LAST_VERSION
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

HELLO_SECONDS: Final = 5.0
"""How long a connection may take until it is known who is there."""


class HostPort(Protocol):
    """An address, of whichever kind."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Peer:
    """Another broker of the cluster, as the cluster's metadata has it."""

    address: HostPort
    directory_id: UUID | None = None
    """If it is known: a broker with another one is not that broker."""


class Sighting(NamedTuple):
    """The newest that is known of a broker."""

    directory_id: UUID
    incarnation: int


class Refusal(IntEnum):
    """Why a connection is not taken; 0, which is none, is a connection that is."""

    VERSION = 1
    OTHER_CLUSTER = 2
    NO_CLUSTER_YET = 3
    OTHER_BROKER = 4
    OTHER_DIRECTORY = 5
    OLD_INCARNATION = 6
    OWN_NODE_ID = 7


class Refused(NamedTuple):
    """A refusal and the sentence that both sides log."""

    refusal: Refusal
    reason: str


def hello_to(node: NodeId, own: BrokerMetadata, cluster_id: str) -> HelloRequest:
    return HelloRequest(
        oldest_version=FIRST_VERSION,
        newest_version=LAST_VERSION,
        cluster_id=cluster_id,
        to_node_id=node,
        node_id=own.node_id,
        directory_id=own.directory_id,
        incarnation=own.incarnation,
        rack=own.rack,
        endpoints=endpoints_of(own.peer, own.listeners),
    )


def judge(
    hello: HelloRequest, own: BrokerMetadata, cluster_id: str | None, known: Sighting | None
) -> Refused | None:
    """Whether the connection is taken: `None`, or why not. `known` is of the node id that comes."""
    node = hello.node_id
    theirs = Spoken(hello.oldest_version, hello.newest_version)
    if not OWN.has_common(theirs):
        return Refused(Refusal.VERSION, nothing_in_common(node, theirs, own.node_id))
    if cluster_id is None:
        return Refused(
            Refusal.NO_CLUSTER_YET,
            f"broker {own.node_id} is still starting, or does not belong to a cluster yet",
        )
    if hello.cluster_id != cluster_id:
        return Refused(
            Refusal.OTHER_CLUSTER,
            f"broker {node} belongs to cluster {hello.cluster_id}, broker {own.node_id} to "
            f"{cluster_id}: one of the two has the wrong address or the wrong data directory",
        )
    if node == own.node_id:
        return Refused(
            Refusal.OWN_NODE_ID,
            f"two brokers have node.id {node}: each needs one of its own",
        )
    if hello.to_node_id != own.node_id:
        return Refused(
            Refusal.OTHER_BROKER,
            f"this is broker {own.node_id}, not {hello.to_node_id}: an address is out of date",
        )
    return judge_sighting(node, Sighting(hello.directory_id, hello.incarnation), known)


def judge_sighting(node: int, seen: Sighting, known: Sighting | None) -> Refused | None:
    """Whether who says to be `node` is the broker that is known, and no earlier life of it."""
    if known is None:
        return None
    if seen.directory_id != known.directory_id:
        return Refused(
            Refusal.OTHER_DIRECTORY,
            f"broker {node} has the data directory {seen.directory_id}, and is known by "
            f"{known.directory_id}: two brokers have one node id, or it has lost its disk and has "
            "to join anew",
        )
    if seen.incarnation < known.incarnation:
        return Refused(
            Refusal.OLD_INCARNATION,
            f"broker {node} in its life {seen.incarnation} is too late: its life "
            f"{known.incarnation} has been here",
        )
    return None


def answer(
    hello: HelloRequest, own: BrokerMetadata, refused: Refused | None, *, is_known: bool
) -> HelloResponse:
    """`is_known`: whether the metadata here have the broker that has come."""
    stranger = "" if is_known else f"broker {own.node_id} knows of no broker {hello.node_id}"
    return HelloResponse(
        refusal=0 if refused is None else refused.refusal,
        reason=stranger if refused is None else refused.reason,
        version=-1 if refused is not None else min(hello.newest_version, LAST_VERSION),
        node_id=own.node_id,
        directory_id=own.directory_id,
        incarnation=own.incarnation,
    )


def judge_answer(node: NodeId, response: HelloResponse, known: Sighting | None) -> Refused | None:
    """Whether the broker that has answered is the one that was meant."""
    if response.refusal:
        return _told(response)
    if not FIRST_VERSION <= response.version <= LAST_VERSION:
        return Refused(Refusal.VERSION, f"broker {node} has chosen version {response.version}")
    if response.node_id != node:
        return Refused(Refusal.OTHER_BROKER, f"broker {response.node_id} is there, not {node}")
    return judge_sighting(node, Sighting(response.directory_id, response.incarnation), known)


def _told(response: HelloResponse) -> Refused:
    """A refusal as it came."""
    reason = response.reason
    try:
        refusal = Refusal(response.refusal)
    except ValueError:  # a newer broker's
        return Refused(Refusal.VERSION, reason)
    return Refused(refusal, with_what_to_do(reason) if refusal is Refusal.VERSION else reason)


def endpoints_of(
    peer: HostPort, listeners: Mapping[str, BrokerAddress]
) -> tuple[PeerEndpoint, ...]:
    """A broker's addresses as they travel."""
    own = PeerEndpoint(name="", host=peer.host, port=peer.port)
    return (
        own,
        *(
            PeerEndpoint(name=name, host=address.host, port=address.port)
            for name, address in listeners.items()
        ),
    )


def peer_address_of(endpoints: Sequence[PeerEndpoint]) -> BrokerAddress | None:
    """Where other brokers reach who has these."""
    for endpoint in endpoints:
        if not endpoint.name:
            return BrokerAddress(endpoint.host, endpoint.port)
    return None


def metadata_of(
    node_id: int,
    directory_id: UUID,
    incarnation: int,
    rack: str | None,
    endpoints: Sequence[PeerEndpoint],
) -> BrokerMetadata | None:
    """What a broker says of itself in a Hello or a Join; `None` without an address for brokers."""
    peer = peer_address_of(endpoints)
    if peer is None:
        return None
    return BrokerMetadata(
        node_id=NodeId(node_id),
        directory_id=directory_id,
        incarnation=incarnation,
        listeners={
            each.name: BrokerAddress(each.host, each.port) for each in endpoints if each.name
        },
        peer=peer,
        rack=rack,
    )
