"""From whom the observers of a partition pull: a tree below its voters.

An observer pulls from voters, and from observers that come before it in the partition's list, so
there are no circles. What is near, in its own rack, goes first: of several observers in a rack
without a voter, one pulls from afar and the others from it. The voters get two children each before
an observer gets any, and the preferred leader, which has most to do, is the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tidemark.protocol.types import NodeId

CHILDREN: Final = 2
"""How many observers of its own rack pull from one broker, and how many from elsewhere, unless
another one has gone."""


def parents_of(
    observer: NodeId,
    *,
    voters: Sequence[NodeId],
    observers: Sequence[NodeId],
    rack_of: Callable[[NodeId], str | None],
) -> tuple[NodeId, ...]:
    """Everybody that it may pull from, whom it had better ask first. `voters` is in the order of
    the assignment, the preferred leader first."""
    rack, at = rack_of(observer), observers.index(observer)
    earlier, quiet = observers[:at], (*voters[1:], *voters[:1])

    def is_near(node: NodeId) -> bool:
        return rack is not None and rack_of(node) == rack

    near = [node for node in (*quiet, *earlier) if is_near(node)]
    if near:
        here = sum(is_near(node) for node in earlier)
        has_voter = any(is_near(node) for node in voters)
        # Where the rack has no voter, its first observer has pulled from afar: it is no child.
        place = here if has_voter else here - 1
        first = near[min(place // CHILDREN, len(near) - 1)]
    else:
        places = [*quiet * CHILDREN, *(node for node in earlier for _ in range(CHILDREN))]
        first = places[min(at, len(places) - 1)]
    # Those further away stand in for each other, spread.
    turn = at % len(quiet) if quiet else 0
    far = (*quiet[turn:], *quiet[:turn], *earlier)
    return tuple(dict.fromkeys((first, *near, *far)))
