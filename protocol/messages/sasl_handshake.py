"""SaslHandshake: choose how to authenticate."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    INT16,
    STRING,
    Message,
    array,
    message,
    wire,
)


@message(versions=(0, 1))
class SaslHandshakeRequest(Message):
    """Chooses the mechanism of the authentication that follows."""

    mechanism: str = wire(STRING, "The mechanism's name.")


@message(versions=(0, 1))
class SaslHandshakeResponse(Message):
    """Says whether the mechanism can be used."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    mechanisms: Sequence[str] = wire(array(STRING), "The mechanisms that can.")
