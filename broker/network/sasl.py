"""Proving who a client is: SASL PLAIN and SCRAM, as exchanges of bytes.

Nothing here tells a client, by an answer or by its time, whether it was the name or the password
that was wrong: an unknown name goes through the same computation with a password nobody has.
"""

import hashlib
import hmac
from collections.abc import Iterable
from typing import Final, Protocol

from tidemark.broker.config import User
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.values import dataclass

PLAIN: Final = "PLAIN"
ITERATIONS: Final = 4096
"""Of SCRAM's hash: what Kafka takes as least, and its clients as usual."""


@dataclass(frozen=True, slots=True)
class Step:
    """What came of a client's message: bytes to send back, and once it is proven, who it is."""

    reply: bytes
    user: str | None


class Exchange(Protocol):
    """One authentication. Each step takes milliseconds of computation: call it on a thread."""

    def step(self, message: bytes) -> Step:
        """Raises `RequestError` SASL_AUTHENTICATION_FAILED; the exchange is over then."""
        ...


class Credentials:
    """The users' passwords."""

    def __init__(self, users: Iterable[User]) -> None:
        self._passwords = {user.name: user.password for user in users}
        # Known to nobody who does not know all passwords, and the same after a restart.
        secret = "\0".join(f"{name}\0{word}" for name, word in sorted(self._passwords.items()))
        self._secret = hashlib.sha256(secret.encode()).digest()

    def begin(self, mechanism: str) -> Exchange:
        return PlainExchange(self) if mechanism == PLAIN else ScramExchange(self, mechanism)

    def check_password(self, name: str, password: str) -> None:
        """Raises `RequestError` SASL_AUTHENTICATION_FAILED."""
        if not hmac.compare_digest(self.password(name).encode(), password.encode()):
            raise failed()

    def password(self, name: str) -> str:
        """The user's password; for an unknown name one that cannot be guessed."""
        return self._passwords.get(name, self._derived("password", name).hex())

    def salt(self, mechanism: str, name: str) -> bytes:
        """Always the same for a name, so that it does not tell whether the name is known."""
        return self._derived(mechanism, name)[:16]

    def _derived(self, purpose: str, name: str) -> bytes:
        return hmac.digest(self._secret, f"{purpose}\0{name}".encode(), "sha256")


class PlainExchange:
    """RFC 4616: one message with an authorization id, a name and a password, zeros between."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def step(self, message: bytes) -> Step:
        try:
            acting_as, name, password = message.decode().split("\0")
        except ValueError:
            raise failed() from None
        self._credentials.check_password(name, password)
        # Some clients repeat the name here, some leave it empty; nobody may act as another.
        if acting_as not in ("", name):
            raise failed()
        return Step(b"", name)


class ScramExchange:
    """RFC 5802: a challenge and its proof, so that the password itself does not travel."""

    def __init__(self, credentials: Credentials, mechanism: str) -> None:
        # Here, because a broker without users does not need it.
        from scramp import ScramMechanism

        self._credentials = credentials
        self._mechanism = ScramMechanism(mechanism)
        self._server = self._mechanism.make_server(self._look_up)
        self._name = ""
        self._is_challenged = False

    def _look_up(self, name: str) -> tuple[bytes, bytes, bytes, int]:
        """What the mechanism keeps of a password: salt, two keys, iterations."""
        self._name = name
        # Computed for every client: a table of known users would answer faster for them.
        info: tuple[bytes, bytes, bytes, int] = self._mechanism.make_auth_info(
            self._credentials.password(name),
            iteration_count=ITERATIONS,
            salt=self._credentials.salt(self._mechanism.name, name),
        )
        return info

    def step(self, message: bytes) -> Step:
        from scramp import ScramException

        try:
            if self._is_challenged:
                self._server.set_client_final(message.decode())
                return Step(self._server.get_server_final().encode(), self._name)
            self._is_challenged = True
            self._server.set_client_first(message.decode())
            return Step(self._server.get_server_first().encode(), None)
        except (ScramException, UnicodeDecodeError) as error:
            raise failed() from error


def failed() -> RequestError:
    return RequestError(
        ErrorCode.SASL_AUTHENTICATION_FAILED, "authentication failed: a wrong name or password"
    )
