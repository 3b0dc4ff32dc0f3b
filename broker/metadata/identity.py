"""Which cluster a data directory belongs to, and what is needed to find the others again.

This is known before the metadata's log can be read: what is committed in it is only known once its
voters have met, and to meet they have to know where they are.
"""

from __future__ import annotations

import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from tidemark.broker.config import BrokerSettings
from tidemark.broker.peers.hello import Peer
from tidemark.partitions.state_machines.cluster_values import BrokerAddress, BrokerMetadata
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.messages.peer.join import JoinResponse
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

_CLUSTER_ID: Final = "cluster_id"
_VOTERS: Final = "cluster_voters"
_PEERS: Final = "cluster_peers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The cluster, and its first voters as this broker came to know it."""

    cluster_id: str
    voters: tuple[NodeId, ...]
    """What the log says of them since goes before it."""


def stored_identity(settings: BrokerSettings, state: StateDb, path: str) -> Identity | None:
    """Of the directory; `None` for one that belongs to no cluster yet. Blocking.

    Raises `StorageError` if it is another cluster's than the settings say.
    """
    cluster_id, voters = state.meta(_CLUSTER_ID), state.meta(_VOTERS)
    if cluster_id is None or voters is None:
        return None
    if settings.cluster_id not in (None, cluster_id):
        raise StorageError(
            f"the data directory {path} is of cluster {cluster_id}, and cluster.id is "
            f"{settings.cluster_id}: give it another directory, or leave cluster.id out"
        )
    return Identity(cluster_id=cluster_id, voters=tuple(map(NodeId, json.loads(voters))))


def founder(settings: BrokerSettings) -> Identity:
    """Of a broker that begins a cluster: alone."""
    return Identity(
        cluster_id=settings.cluster_id or _new_cluster_id(), voters=(NodeId(settings.node_id),)
    )


def joiner(settings: BrokerSettings, welcome: JoinResponse) -> Identity:
    """Of a broker that was taken in. Raises `StorageError` if it was meant for another cluster."""
    if welcome.cluster_id is None or settings.cluster_id not in (None, welcome.cluster_id):
        raise StorageError(
            f"this broker was to join cluster {settings.cluster_id}, and at that address is "
            f"cluster {welcome.cluster_id}"
        )
    return Identity(
        cluster_id=welcome.cluster_id, voters=tuple(map(NodeId, sorted(welcome.voters)))
    )


def record(state: StateDb, identity: Identity, peers: Mapping[NodeId, Peer]) -> None:
    """From now on the directory belongs to that cluster. Blocking."""
    with state.transaction():
        state.set_meta(_CLUSTER_ID, identity.cluster_id)
        state.set_meta(_VOTERS, json.dumps(identity.voters))
        record_peers(state, peers)


def record_peers(state: StateDb, peers: Mapping[NodeId, Peer]) -> None:
    """Where the brokers of the cluster are, this one too. Blocking."""
    body = {
        str(node_id): [peer.address.host, peer.address.port, str(peer.directory_id)]
        for node_id, peer in peers.items()
    }
    state.set_meta(_PEERS, json.dumps(body))


def stored_peers(state: StateDb) -> dict[NodeId, Peer]:
    """Where they were when this was last known. Blocking."""
    body = json.loads(state.meta(_PEERS) or "{}")
    return {
        NodeId(int(node_id)): Peer(BrokerAddress(host, port), UUID(directory_id))
        for node_id, (host, port, directory_id) in body.items()
    }


def peers_of(brokers: Iterable[BrokerMetadata]) -> dict[NodeId, Peer]:
    return {each.node_id: Peer(each.peer, each.directory_id) for each in brokers}


def peers_in(welcome: JoinResponse) -> dict[NodeId, Peer]:
    return {
        NodeId(each.node_id): Peer(BrokerAddress(each.host, each.port), each.directory_id)
        for each in welcome.brokers
    }


def _new_cluster_id() -> str:
    """As Kafka writes its own: 16 random bytes in URL-safe base 64."""
    return urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
