"""What operators ask of a cluster, by name, and in which order a run asks for it.

An operation says in a few words what came of it; what refuses it is the caller's to note.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

import trio

from tidemark.client import Admin, ErrorCode, ReplicaRole, RequestError, TopicPartition

_PAUSE_SECONDS: Final = (0.2, 3.0)
_MOVE_LEADER_SECONDS: Final = 8.0
_SEEN_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.1
_CANCEL_SECONDS: Final = (0.0, 0.15)
_DRAINED_SECONDS: Final = (0.5, 8.0)
_FORCE_PROBABILITY: Final = 0.7

DONE: Final = "done"
_NO_PLACE: Final = "every broker holds it"


@dataclass(frozen=True, slots=True)
class Order:
    """The next thing to ask for, how long to wait before, and the seed of what exactly it is."""

    kind: str
    pause_seconds: float
    seed: int


def orders(seed: int, kinds: Iterable[str]) -> Iterator[Order]:
    """Orders without end. The first ones have each kind once, so that none is left out."""
    rng = Random(f"{seed}-operator")
    known = list(kinds)
    first = rng.sample(known, len(known))
    while True:
        kind = first.pop() if first else rng.choice(known)
        yield Order(kind, rng.uniform(*_PAUSE_SECONDS), rng.getrandbits(32))


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operator may act."""

    nodes: Sequence[int]
    topics: Callable[[], Sequence[str]]
    """All topics now."""
    movable: Callable[[], Sequence[str]]
    """Those with fewer replicas than there are brokers."""
    replicas: Callable[[str], int]
    """As many as a topic was made with: a round counts on what is left without one broker."""
    partitions: int
    """Of each topic."""
    note: Callable[[str], None] = print
    """Where to say what exactly is asked for."""

    def any_partition(self, rng: Random) -> TopicPartition:
        return TopicPartition(rng.choice(self.topics()), rng.randrange(self.partitions))

    def any_movable(self, rng: Random) -> TopicPartition:
        return TopicPartition(rng.choice(self.movable()), rng.randrange(self.partitions))


Operation: TypeAlias = Callable[[Admin, Place, Random], Awaitable[str]]
"""Raises `RequestError`, `OSError` and `trio.TooSlowError`."""


async def move_leader(admin: Admin, place: Place, rng: Random) -> str:
    at = place.any_partition(rng)
    to = rng.choice(await _voters(admin, at))
    place.note(f"{at} to {to}")
    await admin.move_leader(
        at.topic, at.partition, to=to, timeout_seconds=_MOVE_LEADER_SECONDS, reason="chaos"
    )
    return DONE


async def move_replica(admin: Admin, place: Place, rng: Random) -> str:
    at = place.any_movable(rng)
    voters = await _voters(admin, at)
    others = _others(place, voters)
    if not others:
        return _NO_PLACE
    source, to = rng.choice(voters), rng.choice(others)
    place.note(f"{at} from {source} to {to}")
    await admin.move_replica(at, source=source, to=to)
    if await _comes_true(lambda: _is_over(admin, at)):
        return DONE
    return f"taken, goes on after {_SEEN_SECONDS:.0f} s"


async def cancel_replica_move(admin: Admin, place: Place, rng: Random) -> str:
    """Begun, and called off shortly after."""
    at = place.any_movable(rng)
    voters = await _voters(admin, at)
    others = _others(place, voters)
    if not others:
        return _NO_PLACE
    source, to = rng.choice(voters), rng.choice(others)
    place.note(f"{at} from {source} to {to}")
    await admin.reassign_partitions({at: [to if node == source else node for node in voters]})
    await trio.sleep(rng.uniform(*_CANCEL_SECONDS))
    try:
        await admin.cancel_reassignments([at])
    except RequestError as error:
        if error.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS:
            return "too late, it had come true"
        raise
    if await _comes_true(lambda: _is_over(admin, at)):
        return DONE
    return f"taken, goes on after {_SEEN_SECONDS:.0f} s"


async def change_replica_count(admin: Admin, place: Place, rng: Random) -> str:
    """One replica more, and that one, or another, given up again."""
    at = place.any_movable(rng)
    voters, replicas = await _voters(admin, at), place.replicas(at.topic)
    # Nobody is left if the second step came to nothing the last time.
    more = [*voters, *_others(place, voters)][: replicas + 1]
    fewer = rng.sample(more, replicas)
    place.note(f"{at} from {voters} to {more} to {fewer}")
    for wanted in (more, fewer):
        await admin.reassign_partitions({at: wanted})
        if not await _comes_true(lambda: _is_over(admin, at)):
            return f"taken, goes on after {_SEEN_SECONDS:.0f} s"
    return DONE


async def elect_preferred_leaders(admin: Admin, place: Place, rng: Random) -> str:
    topic = rng.choice(place.topics())
    place.note(f"of {topic}")
    numbers = [TopicPartition(topic, number) for number in range(place.partitions)]
    for each in await admin.elect_leaders(numbers, timeout_seconds=_MOVE_LEADER_SECONDS):
        if each.error is not None and not each.was_needless:
            raise each.error
    return DONE


async def drain_and_resume(admin: Admin, place: Place, rng: Random) -> str:
    """Resumed after a while, drained or not."""
    node = rng.choice(place.nodes)
    force = rng.random() < _FORCE_PROBABILITY
    place.note(f"broker {node}{', forced' if force else ''}")
    await admin.drain_broker(node, force=force)
    is_drained = False
    with trio.move_on_after(rng.uniform(*_DRAINED_SECONDS)):
        is_drained = await admin.wait_broker_settled(node) is not None
    await admin.resume_broker(node)
    return DONE if is_drained else "resumed before it was drained"


async def add_observer(admin: Admin, place: Place, rng: Random) -> str:
    at = place.any_movable(rng)
    described = (await admin.describe_replicas([at]))[at]
    free = _others(place, [each.node_id for each in described.replicas])
    if not free:
        return _NO_PLACE
    node = rng.choice(free)
    place.note(f"{at} on {node}")
    await admin.change_observers(at, add=[node])
    if await _comes_true(lambda: _follows(admin, at, node)):
        return DONE
    return f"taken, does not follow after {_SEEN_SECONDS:.0f} s"


async def remove_observer(admin: Admin, place: Place, rng: Random) -> str:
    topic = rng.choice(place.movable())
    numbers = [TopicPartition(topic, number) for number in range(place.partitions)]
    described = await admin.describe_replicas(numbers)
    observers = [(at, each.node_id) for at in numbers for each in described[at].observers]
    if not observers:
        return "nobody observes"
    at, node = rng.choice(observers)
    place.note(f"{at} on {node}")
    await admin.change_observers(at, remove=[node])
    return DONE


OPERATIONS: Final[dict[str, Operation]] = {
    "move a leader": move_leader,
    "move a replica": move_replica,
    "cancel a replica's move": cancel_replica_move,
    "change how many replicas there are": change_replica_count,
    "elect preferred leaders": elect_preferred_leaders,
    "drain and resume a broker": drain_and_resume,
    "add an observer": add_observer,
    "remove an observer": remove_observer,
}


async def put_in_order(admin: Admin) -> None:
    """Have every broker lead again."""
    for broker in await admin.describe_brokers():
        if broker.state != "active":
            await admin.resume_broker(broker.node_id)


async def what_is_open(admin: Admin) -> list[str]:
    """What was asked for, and is not so yet."""
    moving = [f"{at}'s replicas move" for at in await admin.list_reassignments()]
    for broker in await admin.describe_brokers():
        if broker.state != "active":
            moving.append(f"broker {broker.node_id} is {broker.state}")
        if broker.leaders_going or broker.replicas_going:
            moving.append(
                f"broker {broker.node_id} gives up {broker.leaders_going} leaders and "
                f"{broker.replicas_going} replicas"
            )
    return moving


async def _voters(admin: Admin, at: TopicPartition) -> list[int]:
    replicas = (await admin.describe_replicas([at]))[at].replicas
    return [each.node_id for each in replicas if each.role is ReplicaRole.VOTER]


def _others(place: Place, holders: Sequence[int]) -> list[int]:
    return [node for node in place.nodes if node not in holders]


async def _comes_true(is_so: Callable[[], Awaitable[bool]]) -> bool:
    with trio.move_on_after(_SEEN_SECONDS):
        while True:
            if await is_so():
                return True
            await trio.sleep(_LOOK_SECONDS)
    return False


async def _is_over(admin: Admin, at: TopicPartition) -> bool:
    return not await admin.list_reassignments([at])


async def _follows(admin: Admin, at: TopicPartition, node: int) -> bool:
    described = (await admin.describe_replicas([at]))[at]
    return any(each.node_id == node and each.end_offset is not None for each in described.observers)
