"""A member's coordinator: the connection to it, found anew when it has moved, and heartbeats."""

from typing import Final

import trio

from tidemark.client.codes import check
from tidemark.client.connection import Connection
from tidemark.client.coordinator import Membership, find_coordinator
from tidemark.client.group_requests import heartbeat_request
from tidemark.client.group_settings import GroupSettings
from tidemark.client.network import Network, address_of
from tidemark.client.pool import Pool
from tidemark.client.retries import LOST_BROKER, STALE_COORDINATOR, may_pass
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.heartbeat import HeartbeatResponse

# Another broker coordinates the group, or will soon: that says nothing about the generation.
_MOVED: Final = STALE_COORDINATOR | LOST_BROKER


_SHARE: Final = 1 / 5
"""Of a session's time, for one answer: in the rest the next coordinator is found and told."""


class GroupCoordinator:
    """See the module. `pool` is the member's own: a join that waits holds up nobody else there."""

    def __init__(self, network: Network, pool: Pool, settings: GroupSettings) -> None:
        self._network = network
        self._pool = pool
        self._settings = settings
        self._patience = _SHARE * settings.session_timeout_seconds
        self._connection: Connection | None = None

    async def connection(self) -> Connection:
        """To the coordinator as last found; it is looked up where there is no such connection.

        Raises `OSError`, and retriable `RequestError` while nobody coordinates the group.
        """
        if self._connection is None or self._connection.is_closed:
            coordinator = await find_coordinator(
                self._network, self._settings.group, seconds=self._patience
            )
            address = address_of(coordinator)
            with trio.move_on_after(self._patience) as connecting:
                self._connection = await self._pool.connection(address)
            if connecting.cancelled_caught:
                raise ConnectionError(f"{address}: no connection within {self._patience:g} s")
        assert self._connection is not None
        return self._connection

    def forget(self) -> None:
        """Look it up again before it is asked next."""
        self._connection = None

    async def beat(self, membership: Membership) -> None:
        """Say that the member is still there, to whichever broker coordinates the group by then.

        A coordinator that is lost or moves ends no generation: the next one reads from the log who
        the members are, and gives each a whole session's time from then on. So it is looked up and
        told again; a broker that hangs is waited for during a part of the session only, for another
        one may coordinate the group by then. Raises what ends the generation; and the last error if
        nobody has answered for a session's time, because then the partitions may be other members'.
        """
        settings = self._network.settings
        request = heartbeat_request(self._settings.group, membership)
        session_end = trio.current_time() + self._settings.session_timeout_seconds
        for pause in settings.backoff.delays(self._network.random):
            try:
                connection = await self.connection()
                answer = await connection.request_within(request, HeartbeatResponse, self._patience)
                check(answer.error_code, f"group {self._settings.group}")
            except (OSError, RequestError) as error:
                if not _has_moved(error) or trio.current_time() + pause > session_end:
                    raise
                failure = error
            else:
                return
            self.forget()
            await trio.sleep(pause)
            with trio.move_on_after(self._patience):
                await self._network.heed(failure)


def _has_moved(error: OSError | RequestError) -> bool:
    if isinstance(error, OSError):
        return may_pass(error)
    return error.code in _MOVED
