"""Users, and a connection on which they log in."""

from tidemark.broker.config import Address, User
from tidemark.broker.network.requests import Session

ADA = User("ada", "pässword")
BOB = User("bob", "b")
USERS = (ADA, BOB)


def session(*, requires_sasl: bool = True) -> Session:
    return Session(
        connection_id=1,
        client_host="127.0.0.1",
        listener=Address("127.0.0.1", 9092),
        requires_sasl=requires_sasl,
    )
