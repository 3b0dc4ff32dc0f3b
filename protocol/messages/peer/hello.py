"""Hello: the first message on a connection between brokers, and who takes it."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.messages.peer.versions import GREETING
from tidemark.protocol.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    UUID16,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@struct
class PeerEndpoint(Struct):
    """An address that a broker is reached at."""

    name: str = wire(STRING, "The listener's name; empty for that of the other brokers.")
    host: str = wire(STRING, "The host name or address to connect to.")
    port: int = wire(INT32, "The port to connect to.")


@message(versions=GREETING, flexible_since=1)
class HelloRequest(Message):
    """Says who connects, and whom that broker means to reach."""

    oldest_version: int = wire(INT16, "The oldest version of these messages that it speaks.")
    newest_version: int = wire(INT16, "The newest version of these messages that it speaks.")
    cluster_id: str = wire(STRING, "The cluster it belongs to.")
    to_node_id: int = wire(INT32, "The broker that it takes the other side for.")
    node_id: int = wire(INT32, "Its own number.")
    directory_id: UUID = wire(UUID16, "The id of its data directory.")
    incarnation: int = wire(INT64, "How many times that directory has been opened.")
    rack: str | None = wire(STRING, "The rack it stands in, if it was told.", null_since=0)
    endpoints: Sequence[PeerEndpoint] = wire(
        array(PeerEndpoint), "Where it is reached, by other brokers first, then by clients."
    )


@message(versions=GREETING, flexible_since=1)
class HelloResponse(Message):
    """Takes the connection, or says why not; after a refusal it is closed."""

    refusal: int = wire(
        INT16,
        "Why not: 1 no version in common, 2 another cluster, 3 not in a cluster yet, 4 not the "
        "broker that was meant, 5 another data directory than this node id's, 6 a later "
        "incarnation is known, 7 the sides have the same node id; 0 is taken.",
        default=0,
    )
    reason: str = wire(
        STRING,
        "The same in a sentence, for the log. If taken, it is empty, or says that the metadata "
        "here have no such broker: it is yet to be registered, or was removed.",
        default="",
    )
    version: int = wire(INT16, "The version that all further messages here have.", default=-1)
    node_id: int = wire(INT32, "Who answers.")
    directory_id: UUID = wire(UUID16, "The id of its data directory.")
    incarnation: int = wire(INT64, "How many times that directory has been opened.")
