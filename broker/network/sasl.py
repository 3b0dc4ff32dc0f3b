"""Proving who a client is: SASL PLAIN and SCRAM, as exchanges of bytes.

Users are in the broker's settings, with their passwords, or in the cluster's metadata, with what
SCRAM needs. Of a name that is in both, only the settings count: no request changes whom an operator
has let in, or as whom.

Nothing here tells a client, by an answer or by its time, whether it was the name or the password
that was wrong: an unknown name goes through the same computation with a password nobody has, and is
challenged like one that is known.
"""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Iterable
from typing import Final, Protocol

from tidemark.broker.config import User
from tidemark.partitions.state_machines.access.acls import is_shown
from tidemark.partitions.state_machines.access.users import (
    BY_LABEL,
    Credential,
    Shape,
    UserTable,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.values import dataclass

PLAIN: Final = "PLAIN"
ITERATIONS: Final = 4096
"""Of SCRAM's hash: what Kafka takes as least, and its clients as usual."""
_OF_SETTINGS: Final = Shape(ITERATIONS, 16)
"""The challenges of users in the settings."""
_WRONG_NONCE: Final = (
    "the client does not repeat the nonce of the challenge, as librdkafka before 2.6.1 does not: "
    "with it, take PLAIN, over TLS"
)
_STAND_IN: Final = bytes(16)
"""A salt that scramp takes: it refuses to have one of less than 12 bytes, which Kafka lets users
have."""


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
    """What is known of the users: the passwords of the settings, the keys of the cluster."""

    def __init__(self, users: Iterable[User], of_cluster: UserTable) -> None:
        self._passwords = {user.name: user.password for user in users}
        self._of_cluster = of_cluster
        # Known to no client, on all brokers alike, and the same after a restart: without users of
        # the cluster, to nobody who does not know all passwords.
        secret = "\0".join(f"{name}\0{word}" for name, word in sorted(self._passwords.items()))
        self._secret = of_cluster.salt_secret or hashlib.sha256(secret.encode()).digest()

    def begin(self, mechanism: str) -> Exchange:
        return PlainExchange(self) if mechanism == PLAIN else ScramExchange(self, mechanism)

    def check_password(self, name: str, password: str) -> None:
        """Raises `RequestError` SASL_AUTHENTICATION_FAILED, for users of the cluster too: of them
        there is no password to compare with."""
        is_right = hmac.compare_digest(self.password(name).encode(), password.encode())
        if not (is_right and self.has_password(name)):
            raise failed()

    def password(self, name: str) -> str:
        """The user's password; for an unknown name one that stands in for it."""
        return self._passwords.get(name, self._derived("password", name).hex())

    def credential(self, mechanism: str, name: str) -> Credential | None:
        """What the cluster keeps of the user's password, if the settings do not name the user."""
        if self.has_password(name):
            return None
        return self._of_cluster.credentials(name).get(BY_LABEL[mechanism])

    def has_password(self, name: str) -> bool:
        """Whether the settings name the user."""
        return name in self._passwords

    def shape(self, mechanism: str, name: str) -> Shape:
        """Of the challenge for a name that the cluster has no credential of. A name that nobody has
        looks like one of those that somebody has, and always like the same one while there is such
        a one."""
        shapes = self._of_cluster.shapes.get(BY_LABEL[mechanism], ())
        if self.has_password(name) or not shapes:
            return _OF_SETTINGS
        seen = {*shapes, _OF_SETTINGS} if self._passwords else shapes
        return max(seen, key=lambda shape: self._derived(f"{mechanism}\0{shape}", name))

    def salt(self, mechanism: str, name: str, size: int) -> bytes:
        """Always the same for a name, so that it does not tell whether the name is known."""
        return hashlib.shake_256(self._derived(mechanism, name)).digest(size)

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
        self._salt = b""
        self._is_known = False
        self._is_challenged = False

    def _look_up(self, name: str) -> tuple[bytes, bytes, bytes, int]:
        """What the mechanism keeps of a password: salt, two keys, iterations."""
        users, mechanism = self._credentials, self._mechanism.name
        iterations, salt_bytes = users.shape(mechanism, name)
        salt = users.salt(mechanism, name, salt_bytes)
        # Computed for every client: a table of known users would answer faster for them.
        _, stored_key, server_key, _ = self._mechanism.make_auth_info(
            users.password(name),
            iteration_count=ITERATIONS,
            salt=salt.ljust(len(_STAND_IN), b"\0"),
        )
        kept = users.credential(mechanism, name)
        if kept is not None:
            salt, iterations = kept.salt, kept.iterations
            stored_key, server_key = kept.stored_key, kept.server_key
        self._name, self._salt = name, salt
        self._is_known = kept is not None or users.has_password(name)
        return _STAND_IN, stored_key, server_key, iterations

    def step(self, message: bytes) -> Step:
        from scramp import ScramException

        try:
            if self._is_challenged:
                final = message.decode()
                # Not a word about name or password: neither has been looked at yet.
                if f",r={self._server.nonce}," not in final:
                    raise failed(_WRONG_NONCE)
                self._server.set_client_final(final)
                # Whatever was proven: nobody is let in by a name that is nobody's.
                if not self._is_known:
                    raise failed()
                return Step(self._server.get_server_final().encode(), self._name)
            self._is_challenged = True
            self._server.set_client_first(message.decode())
            self._server.salt = b64encode(self._salt).decode()
            return Step(self._server.get_server_first().encode(), None)
        except (ScramException, UnicodeDecodeError) as error:
            raise failed() from error


def is_name(name: str) -> bool:
    """Whether a user of the cluster can have it: ACLs can be about it, and it is what SCRAM looks
    up when a client says it (RFC 5802 has names prepared, RFC 4013)."""
    from scramp import ScramException
    from scramp.utils import saslprep

    if not name or not is_shown(f"User:{name}"):
        return False
    try:
        return bool(saslprep(name) == name)
    except ScramException:
        return False


def failed(why: str = "a wrong name or password") -> RequestError:
    return RequestError(ErrorCode.SASL_AUTHENTICATION_FAILED, f"authentication failed: {why}")
