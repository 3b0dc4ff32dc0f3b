"""AlterUserScramCredentials: the passwords by which users can prove who they are."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    BYTES,
    INT8,
    INT16,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@struct
class ScramCredentialDeletion(Struct):
    """A credential that is taken from a user."""

    name: str = wire(STRING, "The user's name.")
    mechanism: int = wire(INT8, "1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512.")


@struct
class ScramCredentialUpsertion(Struct):
    """A credential that a user gets, in place of the one of that mechanism, if there is one."""

    name: str = wire(STRING, "The user's name.")
    mechanism: int = wire(INT8, "1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512.")
    iterations: int = wire(INT32, "How often the password is hashed.")
    salt: bytes = wire(BYTES, "What is hashed with it, drawn by the client.")
    salted_password: bytes = wire(BYTES, "The hash. Who has it can log in with it.")


@message(versions=(0, 0), flexible_since=0)
class AlterUserScramCredentialsRequest(Message):
    """Asks for credentials to be set and deleted."""

    deletions: Sequence[ScramCredentialDeletion] = wire(
        array(ScramCredentialDeletion), "What goes."
    )
    upsertions: Sequence[ScramCredentialUpsertion] = wire(
        array(ScramCredentialUpsertion), "What is set."
    )


@struct
class AlterUserScramCredentialsResult(Struct):
    """What became of one user's credentials: all of them were changed as asked, or none."""

    user: str = wire(STRING, "The user's name.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )


@message(versions=(0, 0), flexible_since=0)
class AlterUserScramCredentialsResponse(Message):
    """What became of the credentials, by user."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    results: Sequence[AlterUserScramCredentialsResult] = wire(
        array(AlterUserScramCredentialsResult), "Each user that was named, once."
    )
