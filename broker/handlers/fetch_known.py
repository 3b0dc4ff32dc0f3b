"""Fetches that are like an earlier one of their connection: they are not decoded, nor planned.

That goes for what nearly every fetch of a reader that catches up is: there are records, its leader
is here, and there is nothing else to say. Whatever else there is to do is done as for all fetches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.broker.network.requests import Session
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.fetch import FetchRequest
from tidemark.protocol.one_fetch import OneFetch, OneFetches
from tidemark.protocol.types import READ_COMMITTED

if TYPE_CHECKING:
    from tidemark.broker.network.send_queue import Part
    from tidemark.broker.node import Node
    from tidemark.protocol.frames import ApiCodec


def answer_known(
    node: Node, frame: memoryview, session: Session, codec: ApiCodec
) -> list[Part] | None:
    """The answer, if there is one at once; `None` if the request is to be decoded, and nothing is
    done."""
    fetches = session.one_fetches
    if fetches is None or fetches.codec is not codec:
        return None
    found = fetches.find(frame)
    if found is None:
        return None
    known, offset = found
    replica = _replica_of(known, node)
    if (
        replica is None
        or not replica.is_readable(offset, known.leader_epoch)
        or offset >= replica.end_for(known.isolation)
    ):
        return None
    try:
        records = replica.read(
            offset,
            bytes_max=min(known.bytes_max, node.settings.fetch_max_bytes),
            at_least_one=True,
            isolation=known.isolation,
        )
    except RequestError:
        return None  # Decoded, it will be refused with what is wrong.
    size_bytes = len(records)
    has_more_to_say = known.isolation == READ_COMMITTED and replica.aborted(records, offset)
    if size_bytes < max(known.min_bytes, 1) or has_more_to_say:
        records.release()
        return None
    session.fetches += 1
    replica.sent(records, offset)
    head = known.head(frame, replica.ends, size_bytes)
    return [head, records, known.ending] if known.ending else [head, records]


def remember(frame: memoryview, request: FetchRequest, session: Session, codec: ApiCodec) -> None:
    """What was decoded from `frame`, to know its like again."""
    fetches = session.one_fetches
    if fetches is None or fetches.codec is not codec:
        fetches = session.one_fetches = OneFetches(codec)
    fetches.remember(frame, request)


def _replica_of(known: OneFetch, node: Node) -> Replica | None:
    name = known.topic
    if not name:
        topic = node.topics.by_id(known.topic_id)
        name = "" if topic is None else topic.name
    return node.topics.replica(name, known.partition)
