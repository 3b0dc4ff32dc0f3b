"""Whom to ask what any broker can answer: one that is connected, and has not kept silent."""

import math
from collections.abc import Awaitable, Callable, Collection, Iterable
from random import Random
from typing import Final, TypeVar

import trio

from tidemark.client.addresses import Address
from tidemark.client.connection import Connection
from tidemark.client.pool import Pool

T = TypeVar("T")

_SHARE: Final = 1 / 10
"""Of a request's time, for a broker to say something while there is another to be asked."""


class AnyBroker:
    """See the module."""

    def __init__(
        self,
        pool: Pool,
        bootstrap: tuple[Address, ...],
        request_timeout_seconds: float,
        random: Random,
    ) -> None:
        self._pool = pool
        self._bootstrap = bootstrap
        self._request_timeout_seconds = request_timeout_seconds
        self._random = random
        self._silent_until: dict[Address, float] = {}
        self.doubted: Address | None = None
        """The broker that last knew of no controller: it may be cut off from the others."""

    async def ask(
        self, known: Iterable[Address], ask: Callable[[Connection], Awaitable[T]]
    ) -> tuple[Address, T]:
        """What `ask` gets of one of them, and of whom.

        One that hangs is left after a moment for the next, and asked last for a while: its answer
        is dropped if it comes. So is one whose connection breaks: nothing is changed by what is
        asked. `OSError` names all that failed.
        """
        known, asked, broken = list(known), set[Address](), list[OSError]()
        while True:
            address, connection = await self.connect(known, besides=asked)
            is_last = address in asked or asked.issuperset({*known, *self._bootstrap} - {address})
            asked.add(address)
            patience = math.inf if is_last else _SHARE * self._request_timeout_seconds
            try:
                with trio.move_on_after(patience):
                    answer = await ask(connection)
                    self._silent_until.pop(address, None)
                    return address, answer
            except OSError as error:
                broken.append(error)
                if not is_last:
                    continue
                raise _all_of(broken) from error
            self._silent_until[address] = trio.current_time() + self._request_timeout_seconds

    async def connect(
        self, known: Iterable[Address], *, besides: Collection[Address] = ()
    ) -> tuple[Address, Connection]:
        """To some broker, preferably one that is connected, and to none of `besides` if there is
        another. `OSError` names all that failed."""
        failures: list[OSError] = []
        candidates = self._candidates(known)
        for address in sorted(candidates, key=lambda candidate: candidate in besides):
            try:
                return address, await self._pool.connection(address)
            except OSError as error:
                failures.append(error)
        raise _all_of(failures)

    def _candidates(self, known: Iterable[Address]) -> list[Address]:
        now, shuffled = trio.current_time(), list(known)
        self._random.shuffle(shuffled)
        return sorted(
            dict.fromkeys([*shuffled, *self._bootstrap]),
            key=lambda address: (
                self._silent_until.get(address, now) > now,
                address == self.doubted,
                self._pool.open_connection(address) is None,
            ),
        )


def _all_of(failures: list[OSError]) -> OSError:
    if len(failures) == 1:
        return failures[0]
    return ConnectionError("; ".join(dict.fromkeys(map(str, failures))))
