"""The handlers, one module per API, and the table of them.

A broker advertises what is in this table *and* in the protocol's registry: clients adapt to what
is listed, so a number here is a promise that the API works.

A module is imported when the first request for its API comes, so that a start does not wait for
all of them; `settling_in.py` imports the rest once nobody waits for the start.
"""

from collections.abc import Mapping
from typing import Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.handlers.late_table import LateTable
from tidemark.broker.network.requests import Handler

CHANGES: Final[Mapping[int, Change]] = LateTable(
    (19, 20, 30, 31, 33, 37, 43, 44, 45, 46, 49, 51, 55, 20_000, 20_001, 20_002, 20_003, 20_004),
    lambda module: module.CHANGE,
)
"""By API key: what is the business of the leader of the metadata."""

# fmt: off
_ANSWERED_HERE: Final = (
    0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 21, 22, 23, 24, 25, 26, 27, 28, 29, 32,
    34, 35, 36, 42, 47, 48, 50, 60, 61, 65, 66, 68, 69, 74, 75, 20_005, 20_006, 20_007,
)
# fmt: on

HANDLERS: Final[Mapping[int, Handler]] = LateTable(
    (*_ANSWERED_HERE, *CHANGES),
    lambda module: module.CHANGE.answer if hasattr(module, "CHANGE") else module.handle,
)
"""By API key: what answers clients."""

BETWEEN_BROKERS: Final[Mapping[int, Handler]] = LateTable(
    (2, 3, 22, 24, 27), lambda module: module.handle
)
"""By API key: what answers other brokers that ask in Kafka's own requests."""
