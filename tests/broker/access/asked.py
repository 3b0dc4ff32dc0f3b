"""A request of each API about things with a given name, and what a client needs to be let in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from tidemark.broker.network.error_responses import filled
from tidemark.protocol.acls import CLUSTER_NAME, Operation, ResourceType
from tidemark.protocol.registry import APIS
from tidemark.protocol.schema import Message
from tidemark.protocol.schema.wire_types import Array

CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID = (
    ResourceType.CLUSTER,
    ResourceType.GROUP,
    ResourceType.TOPIC,
    ResourceType.TRANSACTIONAL_ID,
)
Need = tuple[Operation, ResourceType]
OP = Operation


@dataclass(frozen=True)
class Case:
    """`named` gives the fields of the request about things that are all called alike."""

    key: int
    needs: tuple[Need, ...]
    named: Callable[[str], dict[str, Any]] = field(default=lambda name: {})
    version: int | None = None

    def __str__(self) -> str:
        return f"{APIS[self.key].name}-{self.at_version}"

    @property
    def at_version(self) -> int:
        return APIS[self.key].max_version if self.version is None else self.version

    def request(self, name: str) -> Message:
        request: Message = build(APIS[self.key].request, self.named(name))
        return request


def name_of(resource_type: ResourceType, name: str) -> str:
    return CLUSTER_NAME if resource_type is CLUSTER else name


def build(kind: type[Any], values: dict[str, Any]) -> Any:
    """A struct with these values, dicts in it being structs; what is not said is empty."""
    made = {}
    for name, value in values.items():
        (field_type,) = (each.type for each in kind.wire_fields if each.name == name)
        element: Any = field_type.element if isinstance(field_type, Array) else None
        if element is not None and value and isinstance(value[0], dict):
            value = [build(element.struct, each) for each in value]
        made[name] = value
    return filled(kind, **made)


def codes(response: Any) -> list[int]:
    """All error codes in a response, wherever they are."""
    found = []
    for each in fields(response):
        value = getattr(response, each.name)
        if each.name.endswith("error_code"):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [code for one in value if hasattr(one, "wire_fields") for code in codes(one)]
    return found


def _partitions(**of_one: Any) -> Callable[[str], dict[str, Any]]:
    one = {"partition_index": 0, **of_one}
    return lambda name: {"topics": [{"name": name, "partitions": [one]}]}


def _commit(name: str) -> dict[str, Any]:
    one = {"partition_index": 0, "committed_offset": 0}
    return {"group_id": name, "topics": [{"name": name, "partitions": [one]}]}


def _resource(resource_type: int) -> Callable[[str], dict[str, Any]]:
    return lambda name: {"resources": [{"resource_type": resource_type, "resource_name": name}]}


def _in_group(name: str) -> dict[str, Any]:
    return {"group_id": name}


def _acls(name: str) -> dict[str, Any]:
    return {
        "resource_type_filter": 1,
        "resource_name_filter": name,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }


def _acl(name: str) -> dict[str, Any]:
    return {
        "resource_type": 2,
        "resource_name": name,
        "principal": "User:bob",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }


def _produce(name: str) -> dict[str, Any]:
    data = [{"name": name, "partition_data": [{"index": 0, "records": b""}]}]
    return {"transactional_id": None, "acks": -1, "timeout_ms": 1, "topic_data": data}


def _fetch(name: str) -> dict[str, Any]:
    one = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    return {"max_wait_ms": 0, "topics": [{"topic": name, "partitions": [one]}]}


CASES = (
    Case(0, ((OP.WRITE, TOPIC),), _produce, 12),
    Case(
        0,
        ((OP.WRITE, TOPIC), (OP.WRITE, TRANSACTIONAL_ID)),
        lambda name: {**_produce(name), "transactional_id": name},
        11,
    ),
    Case(1, ((OP.READ, TOPIC),), _fetch, 12),
    Case(2, ((OP.DESCRIBE, TOPIC),), _partitions(timestamp=-1)),
    Case(3, ((OP.DESCRIBE, TOPIC),), lambda name: {"topics": [{"name": name}]}),
    Case(8, ((OP.READ, GROUP), (OP.READ, TOPIC)), _commit, 9),
    Case(
        9,
        ((OP.DESCRIBE, GROUP), (OP.DESCRIBE, TOPIC)),
        lambda name: {"group_id": name, "topics": [{"name": name, "partition_indexes": [0]}]},
        7,
    ),
    Case(
        9,
        ((OP.DESCRIBE, GROUP), (OP.DESCRIBE, TOPIC)),
        lambda name: {"group_id": name, "topics": [{"name": name, "partition_indexes": [0]}]},
        1,
    ),
    Case(
        9,
        ((OP.DESCRIBE, GROUP), (OP.DESCRIBE, TOPIC)),
        lambda name: {
            "groups": [
                {"group_id": name, "topics": [{"name": name, "partition_indexes": [0]}]},
            ]
        },
        9,
    ),
    Case(10, ((OP.DESCRIBE, GROUP),), lambda name: {"key": name, "key_type": 0}, 3),
    Case(10, ((OP.DESCRIBE, GROUP),), lambda name: {"coordinator_keys": [name], "key_type": 0}),
    Case(
        10,
        ((OP.DESCRIBE, TRANSACTIONAL_ID),),
        lambda name: {"coordinator_keys": [name], "key_type": 1},
    ),
    Case(11, ((OP.READ, GROUP),), _in_group),
    Case(12, ((OP.READ, GROUP),), _in_group),
    Case(13, ((OP.READ, GROUP),), _in_group),
    Case(14, ((OP.READ, GROUP),), _in_group),
    Case(15, ((OP.DESCRIBE, GROUP),), lambda name: {"groups": [name]}),
    Case(
        19,
        ((OP.CREATE, TOPIC),),
        lambda name: {
            "topics": [
                {"name": name, "num_partitions": 1, "replication_factor": 1},
            ],
            "timeout_ms": 1_000,
        },
    ),
    Case(20, ((OP.DELETE, TOPIC),), lambda name: {"topics": [{"name": name}], "timeout_ms": 1_000}),
    Case(20, ((OP.DELETE, TOPIC),), lambda name: {"topic_names": [name], "timeout_ms": 1_000}, 5),
    Case(21, ((OP.DELETE, TOPIC),), _partitions(offset=0)),
    Case(22, ((OP.WRITE, TRANSACTIONAL_ID),), lambda name: {"transactional_id": name}),
    Case(22, ((OP.IDEMPOTENT_WRITE, CLUSTER),), lambda name: {"transactional_id": None}),
    Case(22, ((OP.WRITE, TOPIC),), lambda name: {"transactional_id": None}),
    Case(
        23,
        ((OP.DESCRIBE, TOPIC),),
        lambda name: {"topics": [{"topic": name, "partitions": [{"partition": 0}]}]},
    ),
    Case(
        24,
        ((OP.WRITE, TRANSACTIONAL_ID), (OP.WRITE, TOPIC)),
        lambda name: {
            "v3_and_below_transactional_id": name,
            "v3_and_below_topics": [{"name": name, "partitions": [0]}],
        },
        3,
    ),
    Case(24, ((OP.CLUSTER_ACTION, CLUSTER),), lambda name: {"transactions": []}),
    Case(
        25,
        ((OP.WRITE, TRANSACTIONAL_ID), (OP.READ, GROUP)),
        lambda name: {"transactional_id": name, "group_id": name},
    ),
    Case(26, ((OP.WRITE, TRANSACTIONAL_ID),), lambda name: {"transactional_id": name}),
    Case(
        27,
        ((OP.CLUSTER_ACTION, CLUSTER),),
        lambda name: {
            "markers": [
                {"topics": [{"name": name, "partition_indexes": [0]}]},
            ]
        },
    ),
    Case(
        28,
        ((OP.WRITE, TRANSACTIONAL_ID), (OP.READ, GROUP), (OP.READ, TOPIC)),
        lambda name: {"transactional_id": name, **_commit(name)},
    ),
    Case(29, ((OP.DESCRIBE, CLUSTER),), _acls),
    Case(30, ((OP.ALTER, CLUSTER),), lambda name: {"creations": [_acl(name)]}),
    Case(31, ((OP.ALTER, CLUSTER),), lambda name: {"filters": [_acls(name)]}),
    Case(32, ((OP.DESCRIBE_CONFIGS, TOPIC),), _resource(2)),
    Case(32, ((OP.DESCRIBE_CONFIGS, GROUP),), _resource(32)),
    Case(32, ((OP.DESCRIBE_CONFIGS, CLUSTER),), _resource(4)),
    Case(33, ((OP.ALTER_CONFIGS, TOPIC),), _resource(2)),
    Case(33, ((OP.ALTER_CONFIGS, CLUSTER),), _resource(4)),
    Case(
        34,
        ((OP.ALTER, CLUSTER),),
        lambda name: {
            "dirs": [
                {"path": "/", "topics": [{"name": name, "partitions": [0]}]},
            ]
        },
    ),
    Case(35, ((OP.DESCRIBE, CLUSTER),), lambda name: {"topics": None}),
    Case(37, ((OP.ALTER, TOPIC),), lambda name: {"topics": [{"name": name, "count": 3}]}),
    Case(42, ((OP.DELETE, GROUP),), lambda name: {"groups_names": [name]}),
    Case(43, ((OP.ALTER, CLUSTER),), lambda name: {"topic_partitions": None}),
    Case(44, ((OP.ALTER_CONFIGS, TOPIC),), _resource(2)),
    Case(44, ((OP.ALTER_CONFIGS, GROUP),), _resource(32)),
    Case(45, ((OP.ALTER, CLUSTER),), lambda name: {"timeout_ms": 1_000}),
    Case(46, ((OP.DESCRIBE, CLUSTER),), lambda name: {"timeout_ms": 1_000}),
    Case(47, ((OP.DELETE, GROUP), (OP.READ, TOPIC)), lambda name: _deleted(name)),
    Case(48, ((OP.DESCRIBE_CONFIGS, CLUSTER),)),
    Case(
        49,
        ((OP.ALTER_CONFIGS, CLUSTER),),
        lambda name: {"entries": [{"entity": [{"entity_type": "user", "entity_name": name}]}]},
    ),
    Case(50, ((OP.DESCRIBE, CLUSTER),), lambda name: {"users": None}),
    Case(50, ((OP.DESCRIBE, CLUSTER),), lambda name: {"users": [{"name": name}]}),
    Case(
        51,
        ((OP.ALTER, CLUSTER),),
        lambda name: {"deletions": [{"name": name, "mechanism": 1}], "upsertions": []},
    ),
    Case(55, ((OP.DESCRIBE, CLUSTER),)),
    Case(
        61,
        ((OP.READ, TOPIC),),
        lambda name: {"topics": [{"name": name, "partition_indexes": [0]}]},
    ),
    Case(65, ((OP.DESCRIBE, TRANSACTIONAL_ID),), lambda name: {"transactional_ids": [name]}),
    Case(
        68,
        ((OP.READ, GROUP), (OP.DESCRIBE, TOPIC)),
        lambda name: {"group_id": name, "subscribed_topic_names": [name]},
    ),
    Case(69, ((OP.DESCRIBE, GROUP),), lambda name: {"group_ids": [name]}),
    Case(74, ((OP.DESCRIBE_CONFIGS, CLUSTER),)),
    Case(
        75,
        ((OP.DESCRIBE, TOPIC),),
        lambda name: {"topics": [{"name": name}], "response_partition_limit": 9, "cursor": None},
    ),
    Case(20_000, ((OP.ALTER, CLUSTER),)),
    Case(20_001, ((OP.ALTER, CLUSTER),), lambda name: {"dry_run": False}),
    Case(20_001, ((OP.DESCRIBE, CLUSTER),), lambda name: {"dry_run": True}),
    Case(20_002, ((OP.ALTER, CLUSTER),), lambda name: {"node_id": 1, "dry_run": True}),
    Case(20_003, ((OP.DESCRIBE, CLUSTER),)),
    Case(20_004, ((OP.ALTER, CLUSTER),)),
    Case(
        20_005,
        ((OP.DESCRIBE, TOPIC),),
        lambda name: {"topics": [{"topic": name, "partitions": [0]}], "timeout_ms": 1_000},
    ),
    Case(
        20_006,
        ((OP.DESCRIBE, TOPIC),),
        lambda name: {"topics": [{"topic": name, "partitions": None}]},
    ),
    Case(20_007, ((OP.DESCRIBE, GROUP),), lambda name: {"groups": [name]}),
)

FILTERED = frozenset({16, 66})
"""APIs that refuse nobody, and tell each what it may know of."""
OPEN = frozenset({17, 18, 36, 60})
"""APIs that are for everybody."""


def _deleted(name: str) -> dict[str, Any]:
    return {"group_id": name, "topics": [{"name": name, "partitions": [{"partition_index": 0}]}]}
