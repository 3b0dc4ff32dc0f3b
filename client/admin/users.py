"""Users that log in with SCRAM, as the cluster keeps them (KIP-554)."""

import secrets
from collections.abc import Collection
from typing import Final

from tidemark.client.admin.calls import Calls
from tidemark.client.codes import check
from tidemark.client.connection import Connection
from tidemark.client.descriptions import UserDescription
from tidemark.client.limits import require_name
from tidemark.client.security.sasl import ITERATIONS, SCRAM, salted_password
from tidemark.protocol.errors import ConfigError, ErrorCode, RequestError
from tidemark.protocol.messages import alter_user_scram_credentials as altering
from tidemark.protocol.messages import describe_user_scram_credentials as describing

_NUMBERS: Final = {name: number for number, name in enumerate(SCRAM, start=1)}
_NAMES: Final = {number: name for name, number in _NUMBERS.items()}
_SALT_BYTES: Final = 16
"""As the brokers' own salts have: a longer one would tell the names of those that have it."""


class UserAdmin(Calls):
    """The calls about users."""

    async def describe_users(self) -> list[UserDescription]:
        """All that can log in with SCRAM at the broker that answers."""
        return await self._describe_users(None)

    async def set_user(
        self,
        name: str,
        password: str,
        *,
        mechanisms: Collection[str] = SCRAM,
        iterations: int = ITERATIONS,
    ) -> None:
        """Have a user with this password, in place of the one that it has, if it is there.

        A password that it has by other mechanisms than these is valid still. Connections go on that
        have logged in before. What is sent is not the password, but a hash that is as good: use
        TLS. Raises `ConfigError` for a mechanism that is none and for a password that SCRAM does
        not take, and `RequestError` for what brokers do not: UNACCEPTABLE_CREDENTIAL, say.
        """
        require_name("a user's name", name, may_be_empty=True)
        if not isinstance(password, str):
            raise TypeError(f"a password is a str, not of type {type(password).__name__}")
        upsertions = []
        for mechanism in mechanisms:
            number, salt = _number(mechanism), secrets.token_bytes(_SALT_BYTES)
            upsertions.append(
                altering.ScramCredentialUpsertion(
                    name=name,
                    mechanism=number,
                    iterations=iterations,
                    salt=salt,
                    salted_password=salted_password(mechanism, password, salt, iterations),
                )
            )
        await self._alter_users(
            altering.AlterUserScramCredentialsRequest(deletions=(), upsertions=upsertions)
        )

    async def delete_user(self, name: str, *, mechanisms: Collection[str] = ()) -> None:
        """Delete a user, or the password that it has by these mechanisms. Connections go on that
        have logged in before.

        Raises `RequestError` RESOURCE_NOT_FOUND if there is none; after a lost connection it is
        asked again, and that may be because it was deleted the first time.
        """
        numbers = [_number(each) for each in mechanisms]
        if not numbers:
            (found,) = await self._describe_users([name])
            numbers = [_number(each) for each in found.iterations]
        deletions = [
            altering.ScramCredentialDeletion(name=name, mechanism=number) for number in numbers
        ]
        await self._alter_users(
            altering.AlterUserScramCredentialsRequest(deletions=deletions, upsertions=())
        )

    async def _describe_users(self, names: Collection[str] | None) -> list[UserDescription]:
        users = None if names is None else [describing.UserName(name=name) for name in names]
        request = describing.DescribeUserScramCredentialsRequest(users=users)

        async def ask(connection: Connection) -> list[UserDescription]:
            answer = await connection.request(
                request, describing.DescribeUserScramCredentialsResponse
            )
            check(answer.error_code, "DescribeUserScramCredentials", answer.error_message)
            return [_described(each) for each in answer.results]

        return await self._on_any_broker(ask)

    async def _alter_users(self, request: altering.AlterUserScramCredentialsRequest) -> None:
        async def ask(connection: Connection) -> None:
            answer = await connection.request(request, altering.AlterUserScramCredentialsResponse)
            for each in answer.results:
                check(each.error_code, f"user {each.user}", each.error_message)

        await self._on_controller(ask)


def _described(result: describing.DescribeUserScramCredentialsResult) -> UserDescription:
    check(result.error_code, f"user {result.user}", result.error_message)
    return UserDescription(
        name=result.user,
        iterations={_name(each.mechanism): each.iterations for each in result.credential_infos},
    )


def _number(mechanism: str) -> int:
    try:
        return _NUMBERS[mechanism]
    except KeyError:
        known = " and ".join(SCRAM)
        raise ConfigError(f"no mechanism of SCRAM {mechanism!r} here: there are {known}") from None


def _name(number: int) -> str:
    try:
        return _NAMES[number]
    except KeyError:
        raise RequestError(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"mechanism {number} is not known here"
        ) from None
