"""What people should hear of the groups here: who has lost something, and who has no leader.

A line for many groups, and not again and again: a thousand groups lose their leader at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.peer_table import PeerTable

NO_LEADER_S: Final = 10.0
"""No election takes so long where a majority lives and can sync its disks."""
AGAIN_S: Final = 60.0
LOSSY_S: Final = 1.0
"""Others are elected in the same moment."""
WHOLE_S: Final = 3.0
"""Those that are opened a moment after the others may be worse off."""
_NAMED_MAX: Final = 5
_NEVER: Final = float("inf")


class Concerns:
    """Of one broker. What is said goes to `warn`."""

    def __init__(self, peers: PeerTable, warn: Callable[[str], None]) -> None:
        self._peers = peers
        self._warn = warn
        self.unclean: dict[GroupReplica, None] = {}
        """Those that may have lost what they acknowledged, and do not count until they hold it."""
        self._whole_at = _NEVER
        # Since when they have no leader; the oldest first.
        self._leaderless: dict[GroupReplica, float] = {}
        self._silent_until = 0.0
        # Groups that were opened before anybody told the time are without a leader since then.
        self._began: float | None = None
        # Led here by the votes of all, because too few were sure; and when to say so.
        self._lossy: dict[GroupReplica, None] = {}
        self._lossy_at = _NEVER

    @property
    def leaderless(self) -> int:
        """How many groups that this broker has a vote in have no leader that it knows of."""
        return sum(map(_misses_a_leader, list(self._leaderless)))

    def joined(self, replica: GroupReplica, now: float) -> None:
        """It takes part from now on."""
        # One without a vote is not missed.
        if not replica.group.is_clean and replica.group.is_voter:
            self.unclean[replica] = None
            self._whole_at = _NEVER
        if replica.leader is None:
            self._leaderless.setdefault(replica, now)

    def left(self, replica: GroupReplica) -> None:
        self.unclean.pop(replica, None)
        self._forget_leaderless(replica)
        self._lossy.pop(replica, None)

    def led(self, replica: GroupReplica, *, has_leader: bool, now: float) -> None:
        """It has heard who leads, or that nobody does."""
        if not has_leader:
            self._leaderless.setdefault(replica, now)
            return
        self._forget_leaderless(replica)
        role = replica.group.role
        if isinstance(role, Leader) and role.may_have_lost:
            self._lossy[replica] = None
            self._lossy_at = min(self._lossy_at, now + LOSSY_S)

    def _forget_leaderless(self, replica: GroupReplica) -> None:
        self._leaderless.pop(replica, None)
        if not self._leaderless:
            self._leaderless = {}  # the table of one that has held thousands stays that large

    def worked(self, replica: GroupReplica, now: float) -> None:
        """Something has happened to it. Only of interest while somebody is `unclean`."""
        if replica in self.unclean and replica.group.is_clean:
            del self.unclean[replica]
            if not self.unclean:
                self._whole_at = now + WHOLE_S

    def next_deadline(self) -> float:
        deadline = min(self._whole_at, self._lossy_at)
        if not self._leaderless:
            return deadline
        return min(deadline, self._leaderless_at)

    @property
    def _leaderless_at(self) -> float:
        oldest = next(iter(self._leaderless.values()))
        return max(self._since(oldest) + NO_LEADER_S, self._silent_until)

    def _since(self, told: float) -> float:
        return told if self._began is None else max(told, self._began)

    def tick(self, now: float) -> None:
        if self._began is None:
            self._began = now
        if self._whole_at <= now:
            self._whole_at = _NEVER
            self._warn("all replicas here hold again what they may have lost, count and vote")
        if self._lossy_at <= now:
            lossy, self._lossy, self._lossy_at = list(self._lossy), {}, _NEVER
            self._warn(
                f"{len(lossy)} groups are led here by the votes of all, because too few knew that "
                f"they had lost nothing: records may be gone, of {_named(lossy)}"
            )
        if self._leaderless and self._leaderless_at <= now:
            self._tell_leaderless(now)

    def _tell_leaderless(self, now: float) -> None:
        long = [
            replica
            for replica, since in self._leaderless.items()
            if self._since(since) + NO_LEADER_S <= now and _misses_a_leader(replica)
        ]
        self._silent_until = now + (AGAIN_S if long else NO_LEADER_S)
        if not long:
            return
        is_alive = self._peers.is_alive
        deserted = sum(not replica.group.config.agreed(is_alive) for replica in long)
        seconds = now - self._since(self._leaderless[long[0]])
        groups = "1 group" if len(long) == 1 else f"{len(long)} groups"
        self._warn(
            f"{groups} here had no leader for up to {seconds:.0f} s: {_named(long)}; "
            f"of {deserted} of them too few voters can be heard from"
        )


def _named(replicas: Sequence[GroupReplica]) -> str:
    more = ", …" if len(replicas) > _NAMED_MAX else ""
    return ", ".join(replica.name for replica in replicas[:_NAMED_MAX]) + more


def _misses_a_leader(replica: GroupReplica) -> bool:
    return replica.leader is None and replica.failure is None and replica.group.is_voter
