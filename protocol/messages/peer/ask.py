"""Ask: one of Kafka's own requests between brokers, to the broker that can answer it."""

from tidemark.protocol.messages.peer.versions import SPOKEN
from tidemark.protocol.schema import (
    BYTES,
    INT16,
    STRING,
    Message,
    message,
    wire,
)


@message(versions=SPOKEN, flexible_since=1)
class AskRequest(Message):
    """A request of a broker's own, as it would be sent to a client's listener."""

    api_key: int = wire(INT16, "The API of the request.")
    api_version: int = wire(INT16, "The version of the request.")
    body: bytes = wire(BYTES, "The request without its header.")


@message(versions=SPOKEN, flexible_since=1)
class AskResponse(Message):
    """The answer."""

    error_code: int = wire(INT16, "Why there is no answer; 0 is nothing.", default=0)
    error_message: str | None = wire(STRING, "The same in a sentence.", null_since=0, default=None)
    body: bytes = wire(BYTES, "The response without its header.", default=b"")
