"""Connections by address, made when they are first asked for and again when they were lost.

Everything that long-polls has a pool of its own: a broker answers one request of a connection
after the other, so a fetch or a join that waits would hold up whatever shares its connection.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import trio

from tidemark.client.addresses import Address
from tidemark.client.background import open_background
from tidemark.client.connecting import serve_connection
from tidemark.client.connection import Connection
from tidemark.client.settings import ClientSettings


class Pool:
    """See the module; made by `open_pool`."""

    def __init__(
        self, nursery: trio.Nursery, settings: ClientSettings, given: Collection[Address] | None
    ) -> None:
        self._nursery = nursery
        self._settings = settings
        self._given = given
        self._connections: dict[Address, Connection] = {}
        self._connecting: dict[Address, trio.Lock] = {}
        self._is_closed = False

    def open_connection(self, address: Address) -> Connection | None:
        """The connection to this address if there is one now."""
        connection = self._connections.get(address)
        return None if connection is None or connection.is_closed else connection

    async def connection(self, address: Address) -> Connection:
        """A usable connection.

        Raises `OSError` if none can be had, `trio.ClosedResourceError` after the pool's block.

        Those who ask while one is being made wait for it, and if it fails try again themselves.
        """
        if self._is_closed:
            raise trio.ClosedResourceError("the client is closed")
        connection = self.open_connection(address)
        if connection is not None:
            return connection
        async with self._connecting.setdefault(address, trio.Lock()):
            connection = self.open_connection(address)
            if connection is None:
                is_given = self._given is None or address in self._given
                connection = await self._nursery.start(
                    serve_connection, address.host, address.port, self._settings, is_given
                )
                self._connections[address] = connection
            return connection

    def close(self) -> None:
        """Give out no more connections."""
        self._is_closed = True


@asynccontextmanager
async def open_pool(
    settings: ClientSettings, given: Collection[Address] | None = None
) -> AsyncIterator[Pool]:
    """A pool whose connections are closed at the end of the block. All addresses that are not
    among those `given` are from brokers, as an error will say of them."""
    async with open_background() as nursery:
        pool = Pool(nursery, settings, given)
        try:
            yield pool
        finally:
            pool.close()
