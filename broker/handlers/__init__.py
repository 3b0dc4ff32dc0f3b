"""The handlers, one module per API, and the table of them.

A broker advertises what is in this table *and* in the protocol's registry: clients adapt to what
is listed, so a row here is a promise that the API works.
"""

from collections.abc import Mapping
from typing import Final

from tidemark.broker.requests import Handler

HANDLERS: Final[Mapping[int, Handler]] = {}
