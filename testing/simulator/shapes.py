"""The shapes in which a network falls apart, as the directed links that are cut."""

from collections.abc import Callable, Sequence
from itertools import permutations
from random import Random
from typing import Final, TypeAlias

from tidemark.protocol.types import NodeId

Cut: TypeAlias = list[tuple[NodeId, NodeId]]


def isolate(rng: Random, nodes: Sequence[NodeId]) -> Cut:
    """One node hears nobody, and nobody hears it."""
    alone = rng.choice(nodes)
    return [pair for pair in permutations(nodes, 2) if alone in pair]


def deafen(rng: Random, nodes: Sequence[NodeId]) -> Cut:
    """One node hears nobody, though all hear it."""
    deaf = rng.choice(nodes)
    return [(source, target) for source, target in permutations(nodes, 2) if target == deaf]


def silence(rng: Random, nodes: Sequence[NodeId]) -> Cut:
    """One node is heard by nobody, though it hears all."""
    mute = rng.choice(nodes)
    return [(source, target) for source, target in permutations(nodes, 2) if source == mute]


def split(rng: Random, nodes: Sequence[NodeId]) -> Cut:
    """Two sides that do not hear each other."""
    side = set(rng.sample(nodes, rng.randint(1, len(nodes) - 1)))
    return [pair for pair in permutations(nodes, 2) if (pair[0] in side) != (pair[1] in side)]


def one_way_split(rng: Random, nodes: Sequence[NodeId]) -> Cut:
    """Two sides, of which one hears the other."""
    side = set(rng.sample(nodes, rng.randint(1, len(nodes) - 1)))
    return [pair for pair in permutations(nodes, 2) if pair[0] in side and pair[1] not in side]


def one_pair(rng: Random, nodes: Sequence[NodeId]) -> Cut:
    """Two nodes do not hear each other, and everybody hears both (Cloudflare, 2020)."""
    one, other = rng.sample(nodes, 2)
    return [(one, other), (other, one)]


def ring(rng: Random, nodes: Sequence[NodeId]) -> Cut:
    """Each hears its two neighbours only; every majority is a different one."""
    order = rng.sample(nodes, len(nodes))
    places = {node: place for place, node in enumerate(order)}
    count = len(order)
    return [
        (one, other)
        for one, other in permutations(nodes, 2)
        if (places[one] - places[other]) % count not in (1, count - 1)
    ]


def star(rng: Random, nodes: Sequence[NodeId]) -> Cut:
    """All hear only the one in the middle."""
    middle = rng.choice(nodes)
    return [pair for pair in permutations(nodes, 2) if middle not in pair]


def any_links(rng: Random, nodes: Sequence[NodeId]) -> Cut:
    """Any of the directed links."""
    share = rng.random()
    return [pair for pair in permutations(nodes, 2) if rng.random() < share]


def around(rng: Random, nodes: Sequence[NodeId], node: NodeId) -> Cut:
    """That node hears nobody, and nobody hears it."""
    return [pair for pair in permutations(nodes, 2) if node in pair]


def stranded(rng: Random, nodes: Sequence[NodeId], node: NodeId) -> Cut:
    """That node is left with some of the others only, mostly with less than a majority."""
    others = [other for other in nodes if other != node]
    left = rng.sample(others, rng.randint(0, max(0, len(others) - 1)))
    return [pair for pair in around(rng, nodes, node) if not {*pair} & {*left}]


def held(rng: Random, nodes: Sequence[NodeId], node: NodeId) -> Cut:
    """One link from that node, or one to it, or all of the one kind or the other."""
    end = 0 if rng.random() < 0.6 else 1
    links = [pair for pair in permutations(nodes, 2) if pair[end] == node]
    return links if rng.random() < 0.3 else [rng.choice(links)]


def muffled(rng: Random, nodes: Sequence[NodeId], node: NodeId) -> Cut:
    """All links from that node."""
    return [pair for pair in permutations(nodes, 2) if pair[0] == node]


def whispered(rng: Random, nodes: Sequence[NodeId], node: NodeId) -> Cut:
    """That node is left with one other, which is the same one for all: what several leaders in a
    row have told it, and what of that it has cut again, no third one knows."""
    other = next(other for other in reversed(nodes) if other != node)
    return [pair for pair in around(rng, nodes, node) if other not in pair]


SHAPES: Final[dict[str, Callable[[Random, Sequence[NodeId]], Cut]]] = {
    "isolate": isolate,
    "deafen": deafen,
    "silence": silence,
    "split": split,
    "one way": one_way_split,
    "one pair": one_pair,
    "ring": ring,
    "star": star,
    "any links": any_links,
}
AIMED: Final[dict[str, Callable[[Random, Sequence[NodeId], NodeId], Cut]]] = {
    "isolate": around,
    "strand": stranded,
    "hold": held,
    "whisper": whispered,
    "forget": around,
    "muffle": muffled,
}
"""Kinds of fault that cut, or hold up, links of the very broker that they are for."""
