"""Requests that a broker has to think about: of names that are there, ids that it gave out, epochs
that are nearly right.

Random values are refused at the first look. These come from what the broker has answered before,
by the names of the fields, so that requests join groups, go on with transactions and fence each
other.
"""

import time
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any, Final, TypeVar
from uuid import UUID

from tests.broker.access.asked import codes
from tests.protocol.values import RandomValues
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.registry import APIS
from tidemark.protocol.schema.declaration import Message, Struct, WireField
from tidemark.protocol.schema.wire_types import (
    BYTES,
    RECORDS,
    STRING,
    Array,
    Nested,
    Scalar,
    WireType,
)

M = TypeVar("M", bound=Message)

_KINDS: Final = {
    "topic": "topic name topic_name topic_names subscribed_topic_names",
    "group": "group_id groups groups_names group_ids",
    "member": "member_id",
    "instance": "group_instance_id instance_id",
    "transaction": "transactional_id transactional_ids v3_and_below_transactional_id",
    "producer": "producer_id producer_id_filters v3_and_below_producer_id",
    "producer epoch": "producer_epoch v3_and_below_producer_epoch",
    "topic id": "topic_id",
    "epoch": "leader_epoch current_leader_epoch committed_leader_epoch last_fetched_epoch"
    " coordinator_epoch",
    "generation": "generation_id member_epoch generation_id_or_member_epoch",
    "session": "session_id",
    "session epoch": "session_epoch",
    "offset": "fetch_offset offset committed_offset log_start_offset base_offset high_watermark",
    "any": "resource_name resource_name_filter key coordinator_keys entity_name match",
}
_KIND_OF: Final = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_ITS_OWN: Final = frozenset(
    {"group", "member", "instance", "generation", "transaction", "producer", "producer epoch"}
)
"""What a member or a producer is given, and says from then on."""
_LEARNED: Final = frozenset(_KINDS) - {"topic", "group", "transaction", "any"}

TOPICS: Final = tuple(f"plausible-{number}" for number in range(3))
_FIXED: Final = {
    "topic": (*TOPICS, "plausible-and-not-there"),
    "group": ("group-0", "group-1"),
    "transaction": ("transaction-0", "transaction-1"),
    "any": (*TOPICS, "group-0", "transaction-0", "1", ""),
    "member": ("",),
    "instance": ("one", "two"),
}
_WORDS: Final = {
    "configuration_keys": ("retention.ms", "cleanup.policy", "nope"),
    "name": ("flush", "compression.type"),
    "entity_type": ("user", "client-id", "ip"),
    "mechanism": ("PLAIN", "SCRAM-SHA-256"),
    "protocol_name": ("range", "roundrobin"),
    "protocol_type": ("consumer", "consumer", "consumer", "connect"),
    "server_assignor": ("uniform", "range", "nope"),
    "subscribed_topic_regex": ("plausible-.*", "plausible-[0-1]", "("),
    "state": ("active", "draining"),
    "state_filters": ("Ongoing", "Empty"),
    "states_filter": ("Stable", "Empty", "Dead"),
    "transactional_id_pattern": ("transaction-.*", "("),
    "types_filter": ("classic", "consumer"),
    "value": ("1", "1000", "1048576", "compact", "delete", "os", "zstd", "true", "-1", ""),
}
_NUMBERS: Final = {
    "acks": (-1, -1, 1, 2),
    "max_wait_ms": (0, 100),
    "num_partitions": (1, 2, 3, -1, 0),
    "count": (1, 2, 4, -1),
    "replication_factor": (1, 1, -1, 2),
    "timestamp": (-1, -2, -3, -4, 0),
    "session_timeout_ms": (1000, 1000, 1000, 10),
}
_PARTITIONS: Final = ("partition", "index", "partition_index", "partition_indexes", "partitions")
_GIVEN_OUT: Final = tuple(
    api.response
    for api in APIS.values()
    if api.name in ("JoinGroup", "ConsumerGroupHeartbeat", "InitProducerId")
)
"""What is said together in these is repeated together."""


class PlausibleValues(RandomValues):
    """Values from a seed and from the answers so far."""

    def __init__(self, seed: int, *, spared: frozenset[UUID] = frozenset()) -> None:
        """`spared`: topics of somebody else, which are never named by their ids."""
        super().__init__(seed)
        self._spared = spared
        self._known: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=30))
        self._together: deque[dict[str, Any]] = deque(maxlen=8)
        self._said: dict[str, Any] = {}
        """By kind, for the request that is being made."""

    def request(self, cls: type[M], version: int) -> M:
        """One that `version` can say; of fields that belong together, mostly as they were said."""
        is_sensible = bool(self._together) and self.random.random() < 0.8
        self._said = self.random.choice(self._together) if is_sensible else {}
        return self.struct(cls, version)

    def learn(self, request: Message, answer: Message) -> None:
        """Remember what the broker has said."""
        self._learn(answer, "")
        if isinstance(answer, _GIVEN_OUT) and ErrorCode.NONE in codes(answer):
            both = {**dict(_fields(request)), **dict(_fields(answer))}
            self._together.append(
                {
                    _KIND_OF[name]: value
                    for name, value in both.items()
                    if _KIND_OF.get(name) in _ITS_OWN and value is not None
                }
            )

    def _learn(self, value: object, name: str) -> None:
        kind = _KIND_OF.get(name)
        if isinstance(value, Struct):
            for field, each in _fields(value):
                self._learn(each, field)
        elif isinstance(value, tuple | list):
            for each in value[:5]:
                self._learn(each, name)
        elif kind in _LEARNED and value is not None and value not in self._spared:
            self._known[kind].append(value)

    def _field(self, field: WireField, version: int) -> object:
        random, wire_type = self.random, field.type
        if field.tag is not None and random.random() < 0.4:
            return field.default
        if field.nullable_in(version) and random.random() < 0.1:
            return None
        if isinstance(wire_type, Array):
            element = wire_type.element
            return tuple(
                self._one(field.name, element, version) for _ in range(random.choice(_FEW))
            )
        return self._one(field.name, wire_type, version)

    def _one(self, name: str, wire_type: WireType[Any], version: int) -> object:
        random = self.random
        if isinstance(wire_type, Nested):
            return self.value(wire_type, version)
        # Without acks nothing is answered, and a wait of random length is too long.
        if name != "acks" and not name.endswith("_ms") and random.random() < 0.02:
            return self.value(wire_type, version)
        if wire_type == RECORDS:
            return self._batch()
        if isinstance(wire_type, Scalar):
            return self._number(name, wire_type, version)
        kind = _KIND_OF.get(name, "")
        if kind in self._said:
            return self._said[kind]
        known = [*_FIXED.get(kind, ()), *self._known[kind]]
        if wire_type == STRING:
            return random.choice([*known, *_WORDS.get(name, ())] or ["", "a", "b"])
        if wire_type == BYTES:
            return random.randbytes(random.randrange(30))
        return random.choice(known or [UUID(int=0)])

    def _number(self, name: str, wire_type: Scalar[Any], version: int) -> object:
        random = self.random
        if wire_type.format in ("?", "d"):
            return self.value(wire_type, version)
        if name in _NUMBERS:
            return random.choice(_NUMBERS[name])
        if name in _PARTITIONS:
            return random.choice((0, 0, 0, 0, 0, 1, -1, 50))
        if name.endswith("_ms"):
            return random.choice((0, 10, 100, 300))
        kind = _KIND_OF.get(name, "")
        if kind in self._said and random.random() < 0.8:
            return self._said[kind]
        found = random.choice([0, 1, *self._known[kind]]) + random.choice((0, 0, 1, -1))
        most: int = (1 << 8 * _BYTES[wire_type.format.lower()] - 1) - 1
        return max(0 if wire_type.format.isupper() else -most, min(found, most))

    def _batch(self) -> bytes:
        random = self.random
        now_ms = int(time.time() * 1000)
        records = [
            Record(timestamp_ms=now_ms, key=random.choice((None, b"k")), value=b"v" * number)
            for number in range(random.randrange(1, 4))
        ]
        is_idempotent = random.random() < 0.6
        producer = self._said.get("producer", random.choice([5, *self._known["producer"]]))
        epoch = self._said.get("producer epoch", random.choice((0, 1)))
        data = bytearray(
            encode_batch(
                records,
                compression=random.choice(list(Compression)),
                producer_id=producer if is_idempotent else -1,
                producer_epoch=epoch if is_idempotent else -1,
                base_sequence=random.choice((0, 0, 0, 1, 5)) if is_idempotent else -1,
                is_transactional=is_idempotent and "transaction" in self._said,
            )
        )
        if random.random() < 0.1:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        return bytes(data)


_FEW: Final = (0, 1, 1, 1, 2)
_BYTES: Final = {"b": 1, "h": 2, "l": 4, "q": 8}


def _fields(value: Struct) -> Iterator[tuple[str, object]]:
    for field in value.wire_fields:
        yield field.name, getattr(value, field.name, None)
