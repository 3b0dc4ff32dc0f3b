"""What a handler is given, and the three ways in which it may answer.

Nothing here knows sockets: a connection drives these, and a test can stand in for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from tidemark.broker.config.addresses import DEFAULT_NAME, Address
from tidemark.broker.metrics import ConnectionEnd
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.network.connection import Connection
    from tidemark.broker.network.sasl import Exchange
    from tidemark.broker.network.send_queue import Part
    from tidemark.broker.node import Node
    from tidemark.protocol.frames import ApiCodec
    from tidemark.protocol.one_batch import OneBatches
    from tidemark.protocol.one_fetch import OneFetches

R = TypeVar("R")


def _not_held_back(_seconds: float) -> None:
    """Another broker's client is held back there."""


def _not_told() -> None:
    pass


NO_CONNECTION: Final = 0
"""The connection of who is another broker; connections of clients count from 1."""


@dataclass(slots=True, kw_only=True)
class Session:
    """What a connection is and remembers, from its first request to its last."""

    connection_id: int
    client_host: str
    listener: Address
    """The broker's address for this client: what is advertised, or where the client came in."""
    listener_name: str = DEFAULT_NAME
    """Under this name the other brokers have an address for the same clients."""
    requires_sasl: bool = False
    may_be_held: bool = True
    """False for a request that has waited long enough: it is to be answered, whatever it is."""
    fetches: int = 0
    """How many there were; each begins with another of its partitions."""
    leaderless_since: float | None = None
    """When it was first told of a partition without a leader, by a broker that may be cut off, and
    has not been told better since."""
    seeks_since: float | None = None
    """When it asked for a coordinator that is not known to a broker that may be cut off, and has
    been told of none since."""
    waited_for: int = 0
    """How many partitions its fetches wait for, which the broker has to remember meanwhile."""
    user: str | None = None
    """Who the client has proven to be; set by SaslAuthenticate, or with the handshake of TLS."""
    one_batches: OneBatches | None = None
    """What its Produce requests are like; only their handler looks into it."""
    one_fetches: OneFetches | None = None
    """What its Fetch requests are like; only their handler looks into it."""
    allowed_at: int = 0
    """The revision of the ACLs at which its requests that are known again were allowed."""
    allowed_fetch_session: tuple[int, int] = (0, 0)
    """Its newest fetch session, and that revision when all in it was allowed."""
    gathers: int = 0
    """Not 0: its requests cost less if several are taken together, so as many are received as are
    there. What else it says is for their handler."""
    hold_back: Callable[[float], None] = _not_held_back
    """Has the connection not read for so many seconds: its client is over a quota."""
    on_admitted: Callable[[], None] = _not_told
    """Tells the connection that its client has proven who it is."""
    is_over: bool = False
    """The connection is gone: nobody will read what is still being found out."""
    exchange: Exchange | None = None
    """An authentication that has begun; only the SASL handlers look into it."""

    @property
    def is_clients(self) -> bool:
        return self.connection_id != NO_CONNECTION

    @property
    def is_admitted(self) -> bool:
        """Whether requests other than those that authenticate are served."""
        return self.user is not None or not self.requires_sasl


class RequestContext(NamedTuple):
    """Who asks, and how. A tuple, because one is made for every request."""

    api_version: int
    client_id: str | None
    session: Session

    @property
    def listener(self) -> Address:
        return self.session.listener

    @property
    def client_host(self) -> str:
        return self.session.client_host

    @property
    def connection_id(self) -> int:
        return self.session.connection_id


new_context: Final = partial(tuple.__new__, RequestContext)
"""Makes one of a tuple of its fields, in half the time that calling the class takes."""


class Pending(Generic[R]):
    """An answer that comes later, without a task: completed once, or given up once.

    The handler keeps it and calls `complete` or `fail`. If the connection goes away first,
    `abandoned` turns true, the `on_abandon` callback runs, and completing it does nothing.
    """

    __slots__ = ("_deliver", "_on_abandon", "_outcome", "abandoned")

    def __init__(self) -> None:
        self.abandoned = False
        self._outcome: tuple[R | None, Exception | None] | None = None
        self._deliver: Callable[[R | None, Exception | None], None] | None = None
        self._on_abandon: Callable[[], None] | None = None

    @property
    def is_complete(self) -> bool:
        return self._outcome is not None

    def complete(self, response: R) -> None:
        self._settle(response, None)

    def fail(self, error: Exception) -> None:
        """Answer with an error, as if the handler had raised it; what is no `RequestError` is our
        bug, and logged, so to be called where it is being handled."""
        self._settle(None, error)

    def try_complete(self, answer: Callable[[], R | None]) -> None:
        """Complete with what `answer` gives, if it gives something.

        For callbacks of others (a timer, a commit): whatever it raises is this request's outcome,
        and does not reach them.
        """
        if self.is_complete:
            return
        try:
            response = answer()
        except Exception as error:  # whatever it is, only this request has it
            self.fail(error)
        else:
            if response is not None:
                self.complete(response)

    def _settle(self, response: R | None, error: Exception | None) -> None:
        assert self._outcome is None, "a request is answered once"
        self._outcome = (response, error)
        self._on_abandon = None
        if self._deliver is not None and not self.abandoned:
            self._deliver(response, error)

    def on_abandon(self, callback: Callable[[], None]) -> None:
        """Have `callback` called if the connection goes away before the answer."""
        assert self._on_abandon is None, "a pending answer has one owner"
        self._on_abandon = callback

    def deliver_to(self, deliver: Callable[[R | None, Exception | None], None]) -> None:
        """For the connection: where the answer goes. Called at once if it is there already."""
        assert self._deliver is None, "a request has one connection"
        self._deliver = deliver
        if self._outcome is not None:
            deliver(*self._outcome)

    def abandon(self) -> None:
        """For the connection: nobody waits for this answer any more."""
        if self.abandoned or self._outcome is not None:
            return
        self.abandoned = True
        callback, self._on_abandon = self._on_abandon, None
        if callback is not None:
            callback()


Answer: TypeAlias = R | Pending[R] | Awaitable[R] | None
"""What a handler returns; `None` is no response at all (Produce with acks=0)."""

# One table holds the handlers of all APIs, so the message types are erased here; each
# handler module states its own.
Handler: TypeAlias = "Callable[[Node, Any, RequestContext], Answer[Any]]"


class FrameHandler(ABC):
    """A handler that may answer a request as it came, without having it decoded."""

    @abstractmethod
    def __call__(self, node: Node, request: Any, context: RequestContext) -> Answer[Any]:
        # Any: of whichever API it is; each handler states its own
        ...

    @abstractmethod
    def answer(
        self, node: Node, frames: Sequence[memoryview], session: Session, codec: ApiCodec
    ) -> tuple[int, list[Part] | Pending[list[Part]]] | None:
        """How many of the requests in `frames`, from the first on, are answered as they came, and
        the parts of all their answers; `None`: the first is to be decoded, and nothing is done.

        Does not raise for what the client did."""

    @abstractmethod
    def decoded(
        self, frame: memoryview, request: Any, session: Session, codec: ApiCodec
    ) -> None:  # Any: as above
        """`request` is what was decoded from `frame`: to know its like again."""


class Line(Protocol):
    """Where requests wait that are not to be taken yet."""

    def join(self, waiter: Connection, size_bytes: int) -> None:
        """Have `waiter.go_on` called, once, unless it leaves before."""
        ...

    def leave(self, waiter: Connection) -> None: ...


class NotNow(Exception):
    """A handler's way to leave a request where it was received: nothing was done about it yet. It
    is taken again, as if it had just come, when the line says so; nothing behind it is read."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self.line = line


class Unanswerable(Exception):
    """A handler's way to close the connection, where the protocol leaves no other answer."""

    end = ConnectionEnd.BAD_INPUT


class AskAnother(Unanswerable):
    """The client keeps to this broker, which cannot help it; others may."""

    end = ConnectionEnd.CUT_OFF
