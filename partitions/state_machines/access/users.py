"""Users of the cluster: what it keeps of their passwords, for SCRAM (RFC 5802, KIP-554).

Of a password there are a salt, how often it is hashed with that, and two keys that come of it: one
that checks a client's proof, and one that proves the broker. They do not tell the password; who has
them can but guess it, and has to hash each guess as often.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.values import dataclass

USERS_MAX: Final = 10_000
"""All brokers hold them in memory, and in every snapshot of the metadata."""


class Mechanism(IntEnum):
    """What a user can have credentials of, by Kafka's numbers."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def label(self) -> str:
        """What SASL calls it."""
        return self.name.replace("_", "-")


BY_LABEL: Final = {each.label: each for each in Mechanism}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What checks one password by one mechanism. Of no use to a log, so it does not show there."""

    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserChange:
    """What becomes of a user's credential of one mechanism; the others stay."""

    name: str
    mechanism: Mechanism
    credential: Credential | None
    """`None` removes it."""


_Credentials: TypeAlias = dict[str, dict[Mechanism, Credential]]


class Shape(NamedTuple):
    """What a challenge shows of a credential but its salt."""

    iterations: int
    salt_bytes: int


class UserTable:
    """The part of the cluster's state that says who can log in, and by which password.

    Other threads may look users up: what they look into is replaced by a change, not changed.
    """

    def __init__(self) -> None:
        self._credentials: _Credentials = {}
        self.salt_secret = b""
        """What the salts come of that names are shown that nobody has; empty until there has been a
        user. It stays as it is, or the change would tell these names."""
        self.shapes: Mapping[Mechanism, tuple[Shape, ...]] = {}
        """Those that there are, by mechanism."""

    def __len__(self) -> int:
        return len(self._credentials)

    def __iter__(self) -> Iterator[str]:
        """The names, in the order of their coming."""
        return iter(self._credentials)

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to be kept: there is, or has been, a user."""
        return bool(self._credentials or self.salt_secret)

    def credentials(self, name: str) -> Mapping[Mechanism, Credential]:
        """Those of one user; none if there is no such user."""
        return self._credentials.get(name, {})

    def check(self, changes: Iterable[UserChange]) -> None:
        """Raises `RequestError` RESOURCE_NOT_FOUND for the first that removes what is not there."""
        for each in changes:
            if each.credential is None and each.mechanism not in self.credentials(each.name):
                raise RequestError(
                    ErrorCode.RESOURCE_NOT_FOUND,
                    f"the cluster has no credential of {each.mechanism.label} of user {each.name}",
                )

    def alter(self, changes: Sequence[UserChange], salt_secret: bytes) -> Callable[[], None]:
        """What carries the changes out. Raises `RequestError` if one of them cannot be, or there
        would be too many users; then none is."""
        self.check(changes)
        after = _changed(self._credentials, changes)
        if len(after) > max(USERS_MAX, len(self._credentials)):
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"there would be {len(after)} users, and {USERS_MAX} are the most",
            )

        def carry_out() -> None:
            self.salt_secret = self.salt_secret or salt_secret
            self._put(after)

        return carry_out

    def _put(self, credentials: _Credentials) -> None:
        self._credentials = credentials
        shapes: dict[Mechanism, set[Shape]] = {}
        for of_user in credentials.values():
            for mechanism, each in of_user.items():
                shapes.setdefault(mechanism, set()).add(Shape(each.iterations, len(each.salt)))
        self.shapes = {mechanism: tuple(sorted(each)) for mechanism, each in shapes.items()}

    # As a part of a snapshot. Any: JSON's own values

    def body(self) -> dict[str, Any]:
        return {
            "salt_secret": self.salt_secret.hex(),
            "credentials": [
                plain_change(UserChange(name=name, mechanism=mechanism, credential=each))
                for name, of_user in self._credentials.items()
                for mechanism, each in of_user.items()
            ],
        }

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "UserTable":
        table = cls()
        table._put(_changed({}, [change_of_plain(each) for each in body["credentials"]]))
        table.salt_secret = bytes.fromhex(body["salt_secret"])
        return table


def _changed(before: _Credentials, changes: Iterable[UserChange]) -> _Credentials:
    """What becomes of them; `before`, and all that is in it, is as it was."""
    after = dict(before)
    for change in changes:
        of_user = dict(after.get(change.name, {}))
        if change.credential is None:
            of_user.pop(change.mechanism, None)
        else:
            of_user[change.mechanism] = change.credential
        if of_user:
            after[change.name] = of_user
        else:
            after.pop(change.name, None)
    return after


# As a part of a command or a snapshot. Any: JSON's own values


def plain_change(change: UserChange) -> list[Any]:
    kept = change.credential
    if kept is None:
        return [change.name, change.mechanism.label]
    keys = [each.hex() for each in (kept.salt, kept.stored_key, kept.server_key)]
    return [change.name, change.mechanism.label, kept.iterations, *keys]


def change_of_plain(body: Any) -> UserChange:
    """What its plain form stands for. Raises `KeyError`, `TypeError` or `ValueError`."""
    name, label, *kept = body
    credential = None
    if kept:
        iterations, salt, stored_key, server_key = kept
        credential = Credential(
            iterations=int(iterations),
            salt=bytes.fromhex(salt),
            stored_key=bytes.fromhex(stored_key),
            server_key=bytes.fromhex(server_key),
        )
    return UserChange(name=str(name), mechanism=BY_LABEL[label], credential=credential)
