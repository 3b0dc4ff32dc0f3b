"""What a client is given to do while it has a quota, and how long that has to take."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tidemark.client.blocking import open_client

RATE: Final = 200_000
"""Bytes a second. The brokers of these tests let clients use up one second's worth at once."""
VALUES: Final = [bytes([number]) * 10_000 for number in range(50)]
SECONDS_MIN: Final = 0.6
"""Two and a half seconds' worth: the first is free, and after the last nobody need wait."""


@contextmanager
def limited(bootstrap: str, client_id: str) -> Iterator[None]:
    """As long as this block lasts, that client is."""
    rates = {"producer_byte_rate": float(RATE), "consumer_byte_rate": float(RATE)}
    with open_client(bootstrap) as client:
        client.run(lambda: client.admin.alter_quotas(client_id=client_id, set=rates))
        try:
            yield
        finally:
            client.run(lambda: client.admin.alter_quotas(client_id=client_id, remove=list(rates)))


@contextmanager
def takes_time() -> Iterator[None]:
    began_at = time.monotonic()
    yield
    assert time.monotonic() - began_at >= SECONDS_MIN
