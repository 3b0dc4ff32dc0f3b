"""Replicas that were of the group before, left it, and come back with an empty log.

Who leaves a group gives up its log. It must not give up what it has promised with it: replicas that
come back and know nothing would elect whoever comes first, themselves if the old part of the log,
which they are sent first, names nobody else. So a replica that leaves keeps one number, the epoch
that it is in, and when it comes back (`left_in`)

* it begins in that epoch: what is said in earlier ones is refused;
* it votes for nobody, and so does not campaign, with a log that ends in that epoch or before.

To a leader it says that it is unclean, for that one may remember what it held before it left; from
then on it is a replica like any other: what it acknowledges it holds. Let P have left in
epoch p, and let q be an entry that was committed in epoch e, P being one of the majority that held
it. P acknowledged q, so e <= p.

1. *A candidate X that P votes for after its return has q.* Its log ends in an epoch d > p >= e, and
   was that of d's leader up to an entry of d; what that leader had when it was elected precedes
   this entry. By induction over epochs, with P's rule in place of Raft's comparison of P's log,
   d's leader had q. So P's vote is worth what it was worth when P held q itself, and every
   majority that elects shares a voter with every majority that committed (§5.4.3), as ever.
2. *One vote an epoch.* P has voted in epochs up to p only. No candidate in one of these has a log
   that ends beyond p, so P does not vote in them again, and need not know for whom it had voted.
3. *Leaders that were deposed.* P took part in deposing them in epochs up to p, and refuses their
   entries as it did. One of epoch p itself may send P its log again: what P then acknowledges
   it holds, as if it had been slow.

Nothing is said of configurations, nor of when P leaves: it may be too early, and it may happen
again. What is lost with P's log is a copy, and so nobody gives one up before the voters have
changed. A crash may come at any moment, if only the epoch is durable before the rest is gone, and
before the journal that has it is used again.

*That somebody can be elected.* P is let into a configuration once it holds the log of a leader
whose epoch P has accepted: it is p or later. That configuration begins a still later epoch, and all
who have it in their logs, and so may need P's vote, end beyond p. From then on the rule asks
nothing of P either. A start that finds such an epoch in P's log forgets p: were the end of that log
lost with the page cache (`flush=os`), P is unclean as any other replica is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.partitions.raft.marks import mark

if TYPE_CHECKING:
    from tidemark.partitions.raft.replica import Replica
    from tidemark.protocol.types import Position


def may_elect(replica: Replica, last: Position) -> bool:
    """Whether it may help to elect somebody, perhaps itself, whose log ends there."""
    if replica.left_in is None or last.epoch > replica.left_in:
        return True
    mark("returned_and_knows_too_little_to_elect")
    return False
