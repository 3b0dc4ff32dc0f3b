"""Who had better lead a group, when nobody does."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidemark.protocol.types import NodeId


def election_order(
    preferred: Sequence[NodeId], last_resorts: Collection[NodeId]
) -> Sequence[NodeId]:
    """As preferred, but `last_resorts`, which are to lead nothing, come behind all others.

    They stay electable: a partition led by a broker that is to be stopped is better than one that
    nobody leads.
    """
    if not last_resorts:
        return preferred
    return sorted(preferred, key=lambda node: node in last_resorts)
