"""Forward and Propose: to the broker that leads the cluster's metadata, for a client or itself."""

from tidemark.protocol.messages.peer.versions import SPOKEN
from tidemark.protocol.schema import (
    BYTES,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    message,
    wire,
)


@message(versions=SPOKEN, flexible_since=1)
class ForwardRequest(Message):
    """A request as a client sent it, and what is known of that client."""

    api_key: int = wire(INT16, "The API of the request.")
    api_version: int = wire(INT16, "The version of the request.")
    client_id: str | None = wire(
        STRING, "The name that the client gives itself.", null_since=0, default=None
    )
    principal: str | None = wire(
        STRING, "Who the client has proven to be, null if nobody asked.", null_since=0, default=None
    )
    client_host: str = wire(STRING, "The address that the client came from.", default="")
    listener_name: str = wire(STRING, "The listener that the client came by.", default="")
    timeout_ms: int = wire(
        INT32, "How long somebody waits for the answer, in milliseconds.", default=30_000
    )
    body: bytes = wire(BYTES, "The request without its header.")


@message(versions=SPOKEN, flexible_since=1)
class ForwardResponse(Message):
    """The answer, to be passed back."""

    error_code: int = wire(INT16, "Why there is no answer; 0 is nothing.", default=0)
    error_message: str | None = wire(STRING, "The same in a sentence.", null_since=0, default=None)
    metadata_version: int = wire(
        INT64,
        "The version of the cluster's metadata that the answer came of, -1 for none: who passes "
        "it back waits until it has that, so that the client sees what it has done.",
        default=-1,
    )
    body: bytes = wire(BYTES, "The response without its header.", default=b"")


@message(versions=SPOKEN, flexible_since=1)
class ProposeRequest(Message):
    """A change of the cluster's metadata that a broker wants for itself."""

    command: bytes = wire(BYTES, "The change, as it is in the metadata's log.")


@message(versions=SPOKEN, flexible_since=1)
class ProposeResponse(Message):
    """What became of the change."""

    error_code: int = wire(INT16, "Why it was not made; 0 is nothing.", default=0)
    error_message: str | None = wire(STRING, "The same in a sentence.", null_since=0, default=None)
    metadata_version: int = wire(
        INT64, "The version of the cluster's metadata that has the change.", default=-1
    )
    result: bytes = wire(BYTES, "What the change has given to who asked for it.", default=b"")
