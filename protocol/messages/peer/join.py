"""Join: a broker that knows an address asks to belong to the cluster there."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.messages.peer.hello import PeerEndpoint
from tidemark.protocol.messages.peer.versions import JOIN
from tidemark.protocol.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    UUID16,
    ZERO_UUID,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@message(versions=JOIN, flexible_since=1)
class JoinRequest(Message):
    """Asks for the cluster and its brokers. It may come without a Hello before it."""

    cluster_id: str | None = wire(
        STRING, "The cluster it belongs to already, null for a new broker.", null_since=0
    )
    node_id: int = wire(INT32, "Its number.")
    directory_id: UUID = wire(UUID16, "The id of its data directory.")
    incarnation: int = wire(INT64, "How many times that directory has been opened.")
    rack: str | None = wire(STRING, "The rack it stands in, if it was told.", null_since=0)
    endpoints: Sequence[PeerEndpoint] = wire(
        array(PeerEndpoint), "Where it is reached, by other brokers first, then by clients."
    )
    join: Sequence[str] = wire(
        array(STRING), "The addresses that it was told to ask, as host:port.", default=()
    )


@struct
class PeerBroker(Struct):
    """A broker of the cluster, for the others."""

    node_id: int = wire(INT32, "Its number.")
    host: str = wire(STRING, "The host name or address to connect to.")
    port: int = wire(INT32, "The port to connect to.")
    directory_id: UUID = wire(
        UUID16, "The id of its data directory; zero if it is not known.", default=ZERO_UUID
    )


@message(versions=JOIN, flexible_since=1)
class JoinResponse(Message):
    """The cluster, or why the broker cannot join it."""

    error_code: int = wire(INT16, "Why not; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "The same in a sentence, for the log.", null_since=0, default=None
    )
    cluster_id: str | None = wire(
        STRING, "The cluster, null where there is none yet.", null_since=0, default=None
    )
    metadata_version: int = wire(
        INT64, "The version of the cluster's metadata that has the new broker.", default=-1
    )
    node_id: int = wire(INT32, "Who answers.", default=-1)
    directory_id: UUID = wire(UUID16, "The id of its data directory.", default=ZERO_UUID)
    brokers: Sequence[PeerBroker] = wire(
        array(PeerBroker), "The brokers that are known, the one that answers too.", default=()
    )
    voters: Sequence[int] = wire(
        array(INT32), "The brokers that vote on the cluster's metadata.", default=()
    )
