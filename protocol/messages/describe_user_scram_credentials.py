"""DescribeUserScramCredentials: by which mechanisms of SCRAM users can prove who they are."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
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
class UserName(Struct):
    """A user that is asked about."""

    name: str = wire(STRING, "The name.")


@message(versions=(0, 0), flexible_since=0)
class DescribeUserScramCredentialsRequest(Message):
    """Asks for what is known of users' credentials, but for the secrets."""

    users: Sequence[UserName] | None = wire(
        array(UserName), "The users; null or none asks for all of them.", null_since=0
    )


@struct
class CredentialInfo(Struct):
    """One mechanism by which a user can authenticate."""

    mechanism: int = wire(INT8, "1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512.")
    iterations: int = wire(INT32, "How often the password is hashed.")


@struct
class DescribeUserScramCredentialsResult(Struct):
    """The credentials of one user."""

    user: str = wire(STRING, "The user's name.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    credential_infos: Sequence[CredentialInfo] = wire(
        array(CredentialInfo), "The user's mechanisms."
    )


@message(versions=(0, 0), flexible_since=0)
class DescribeUserScramCredentialsResponse(Message):
    """The credentials of the users that were asked about."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    results: Sequence[DescribeUserScramCredentialsResult] = wire(
        array(DescribeUserScramCredentialsResult), "The credentials, by user."
    )
