"""Who is to hold a partition, from who holds it and what is asked for; or why that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId

Replicas: TypeAlias = tuple[NodeId, ...]
Change: TypeAlias = Callable[[str, Replicas], Replicas]
"""From a partition's name and its replicas, the preferred leader first, to those it is to have.

Raises `RequestError` INVALID_REPLICA_ASSIGNMENT."""


def moved(source: int, to: int) -> Change:
    """In its place: if `source` is to lead first, `to` is."""

    def change(name: str, replicas: Replicas) -> Replicas:
        _check_held(name, replicas, source)
        _check_free(name, replicas, to)
        return tuple(NodeId(to) if node == source else node for node in replicas)

    return change


def added(brokers: Sequence[int]) -> Change:
    """After those that there are."""

    def change(name: str, replicas: Replicas) -> Replicas:
        for broker in brokers:
            _check_free(name, replicas, broker)
        return (*replicas, *map(NodeId, brokers))

    return change


def removed(brokers: Sequence[int]) -> Change:
    """All but these; one has to stay."""

    def change(name: str, replicas: Replicas) -> Replicas:
        for broker in brokers:
            _check_held(name, replicas, broker)
        left = tuple(node for node in replicas if node not in brokers)
        if not left:
            held = "the only replica" if len(replicas) == 1 else "all replicas"
            raise _impossible(
                f"{held} of {name} would go, and all its records: move one to another broker, or "
                "delete the topic"
            )
        return left

    return change


def _check_held(name: str, replicas: Replicas, broker: int) -> None:
    if broker not in replicas:
        held = ", ".join(map(str, replicas))
        raise _impossible(f"broker {broker} holds no replica of {name}: those are on {held}")


def _check_free(name: str, replicas: Replicas, broker: int) -> None:
    if broker in replicas:
        raise _impossible(f"broker {broker} holds a replica of {name} already")


def _impossible(why: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
