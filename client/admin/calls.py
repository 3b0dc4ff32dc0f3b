"""What the administrative calls have in common: whom to ask, and the retries."""

from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from tidemark.client.connection import Connection
from tidemark.client.network import Network
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.schema import Message

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class Calls:
    """The base of the admin classes."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def _on_controller(
        self,
        ask: Callable[[Connection], Awaitable[T]],
        *,
        final: Collection[ErrorCode] = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,),
    ) -> T:
        """Ask the controller, which may have to be found first, and again if it has moved.

        Codes in `final` go out at once: about a name that was given, "unknown" is an answer.
        """

        async def attempt() -> T:
            return await ask(await self._network.controller())

        return await self._network.retrying(attempt, final=final)

    async def _on_any_broker(
        self,
        ask: Callable[[Connection], Awaitable[T]],
        *,
        final: Collection[ErrorCode] = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,),
    ) -> T:
        async def attempt() -> T:
            return await ask(await self._network.any_connection())

        return await self._network.retrying(attempt, final=final)
