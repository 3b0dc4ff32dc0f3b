"""SaslAuthenticate: one step of authenticating."""

from tidemark.protocol.schema import (
    BYTES,
    INT16,
    INT64,
    STRING,
    Message,
    message,
    wire,
)


@message(versions=(0, 2), flexible_since=2)
class SaslAuthenticateRequest(Message):
    """Carries one step of the chosen mechanism."""

    auth_bytes: bytes = wire(BYTES, "The mechanism's bytes.")


@message(versions=(0, 2), flexible_since=2)
class SaslAuthenticateResponse(Message):
    """Carries the broker's side of that step."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    auth_bytes: bytes = wire(BYTES, "The mechanism's bytes.")
    session_lifetime_ms: int = wire(
        INT64,
        "When the client must authenticate again, in milliseconds from now; 0 is never.",
        since=1,
        default=0,
        ignorable=True,
    )
