"""What each version of the protocol between brokers has said, as digests in `peer_versions.json`,
oldest first.

Brokers of one version take it that they read each other's messages alike. So a change of a message,
of its bytes or of what its declaration says that a field means, is a new version of all messages;
or a change of the last one, if no release has spoken that yet.
"""

import hashlib
import json
from pathlib import Path
from typing import Final, NamedTuple

from tidemark.protocol.peer_registry import PEER_APIS
from tidemark.protocol.reference import message_tables

FILE: Final = Path(__file__).with_name("peer_versions.json")
_DIGITS: Final = 16


class Recorded(NamedTuple):
    version: int
    digest: str
    what: str
    """That is new with it."""


def recorded() -> list[Recorded]:
    return [Recorded(**row) for row in json.loads(FILE.read_text())]


def digest() -> str:
    """Of all messages as they are declared now: keys, fields, types and meanings."""
    said = hashlib.sha256()
    for api in PEER_APIS.values():
        for cls in (api.request, api.response):
            if cls is not None:
                said.update(f"{api.key} {cls.flexible_since}\n".encode())
                said.update("\n".join(message_tables(cls, cls.__name__)).encode())
    return said.hexdigest()[:_DIGITS]
