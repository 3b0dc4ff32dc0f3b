"""Proving to a broker who one is: SASL PLAIN and SCRAM, as an exchange of messages.

Like `Wire` it knows nothing of sockets: the trio connection and the blocking one send what
`authenticate` yields, and give it the answers.
"""

from collections.abc import Generator
from dataclasses import field
from typing import Final

from tidemark.client.codes import error_code
from tidemark.client.limits import require_name
from tidemark.protocol.errors import ConfigError, ErrorCode, RequestError
from tidemark.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tidemark.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tidemark.protocol.schema import Message
from tidemark.protocol.values import dataclass

PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS: Final = 4096
"""How often a password is hashed, if nobody says otherwise: the least that brokers take."""
ITERATIONS_MAX: Final = 16_384
MECHANISMS: Final = (PLAIN, *SCRAM)
_HASHES: Final = dict(zip(SCRAM, ("sha256", "sha512"), strict=True))

Ask = tuple[Message, type[Message]]
"""A request, and the type of its answer."""


@dataclass(frozen=True, slots=True)
class Sasl:
    """A name and how to prove it. PLAIN shows the password to whoever listens: use it over TLS.

    Raises `ConfigError` for a mechanism that is not spoken.
    """

    mechanism: str
    username: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            known = ", ".join(MECHANISMS)
            raise ConfigError(f"no SASL mechanism {self.mechanism!r} here; there are {known}")
        require_name("username", self.username, may_be_empty=True)
        if not isinstance(self.password, str):
            raise TypeError(f"password is a str, not of type {type(self.password).__name__}")


def authenticate(sasl: Sasl) -> Generator[Ask, Message, None]:
    """Yields each request with the type of its answer, which is to be sent in; ends when proven.

    Raises `RequestError`: UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE where nobody is to
    authenticate, or SASL_AUTHENTICATION_FAILED with what the broker has said, or if it is the
    broker that cannot prove that it knows the password.
    """
    answer = yield SaslHandshakeRequest(mechanism=sasl.mechanism), SaslHandshakeResponse
    assert isinstance(answer, SaslHandshakeResponse)
    match error_code(answer.error_code):
        case ErrorCode.NONE:
            pass
        case ErrorCode.UNSUPPORTED_SASL_MECHANISM as code:
            offered = ", ".join(answer.mechanisms) or "none"
            raise RequestError(
                code, f"the broker does not take {sasl.mechanism}; it takes {offered}"
            )
        case ErrorCode.ILLEGAL_SASL_STATE as code:
            raise RequestError(code, "this listener asks for no password: leave SASL out")
        case code:
            raise RequestError(code, "the broker refused to authenticate")
    yield from (_plain(sasl) if sasl.mechanism == PLAIN else _scram(sasl))


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """What SCRAM makes of a password (RFC 5802). Who has it can log in with it.

    Raises `ConfigError` for a password that SCRAM does not take, or that is none, and for
    iterations that no broker takes.
    """
    # Here, because a client without a password does not need them.
    from hashlib import pbkdf2_hmac

    from scramp import ScramException
    from scramp.utils import saslprep

    try:
        prepared: str = saslprep(password)
    except ScramException:
        prepared = ""
    if not prepared:
        raise ConfigError("a password has one character or more, and no control characters")
    if not ITERATIONS <= iterations <= ITERATIONS_MAX:
        raise ConfigError(f"{iterations} iterations: brokers take {ITERATIONS} to {ITERATIONS_MAX}")
    return pbkdf2_hmac(_HASHES[mechanism], prepared.encode(), salt, iterations)


def refused(address: object, error: RequestError) -> RequestError:
    """What `authenticate` has raised, with the broker's name."""
    if error.code is ErrorCode.UNSUPPORTED_VERSION:
        return RequestError(error.code, f"{address}: {error.message}, so it asks for no password")
    return RequestError(error.code, f"{address}: {error.message or 'it does not say why'}")


def _plain(sasl: Sasl) -> Generator[Ask, Message, None]:
    """RFC 4616."""
    yield from _step(f"\0{sasl.username}\0{sasl.password}")


def _scram(sasl: Sasl) -> Generator[Ask, Message, None]:
    """RFC 5802."""
    # Here, because a client without a password does not need it.
    from scramp import ScramClient, ScramException

    client = ScramClient([sasl.mechanism], sasl.username, sasl.password)
    try:
        client.set_server_first((yield from _step(client.get_client_first())))
        client.set_server_final((yield from _step(client.get_client_final())))
    except ScramException as error:
        raise RequestError(
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            f"the broker has not proven that it knows the password: {error}",
        ) from error


def _step(text: str) -> Generator[Ask, Message, str]:
    answer = yield SaslAuthenticateRequest(auth_bytes=text.encode()), SaslAuthenticateResponse
    assert isinstance(answer, SaslAuthenticateResponse)
    if answer.error_code != ErrorCode.NONE:
        raise RequestError(error_code(answer.error_code), answer.error_message)
    return bytes(answer.auth_bytes).decode()
