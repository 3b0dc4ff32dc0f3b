"""Who reads what, and who is a member, as far as the members of groups know it themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tidemark.protocol.types import TopicPartition
from tidemark.testing.checkers.violation import Violation

_SURE_SECONDS: Final = 0.7
"""So long after a request that was granted, whoever it was for has not lost what it had: neither
the session's time is over nor that to give up, or to join again, by any clock."""


class Holdings:
    """Of all groups of a run."""

    def __init__(
        self,
        granted: Mapping[tuple[str, str], int],
        has_former_coordinator: Callable[[str], bool],
        *,
        is_judged: bool,
    ) -> None:
        """Not where requests come late or twice: a doubled one can be the sender's new beginning,
        which it does not know of. `granted` is how often coordinators said yes to a heartbeat, by
        group and member, whether that was heard or not."""
        self._granted = granted
        self._has_former_coordinator = has_former_coordinator
        self._is_judged = is_judged
        self._held: dict[tuple[str, TopicPartition], tuple[str, float]] = {}

    def now(
        self, group: str, member: str, reads: Sequence[TopicPartition], *, asked: float, now: float
    ) -> None:
        """A request of a member, from when it `asked`, was granted: this is all that it reads.

        Raises `Violation` if another one may be sure that it reads the same, and so may this one:
        it may say so long after it was heard last.
        """
        self.only(group, member, ())
        if now - asked >= _SURE_SECONDS:
            return
        for partition in reads:
            other, since = self._held.get((group, partition), ("", -1e9))
            if other and self._is_judged and now - since < _SURE_SECONDS:
                what = f"{member} and {other} of {group}, at {now:.3f} and {since:.3f}"
                raise Violation("one member reads a partition", str(partition), what)
            self._held[group, partition] = member, asked

    def times_granted(self, group: str, member: str) -> int:
        """How often its heartbeats were granted, whether it has heard that or not."""
        return self._granted[group, member]

    def check_out(self, group: str, member: str, *, granted: float, now: float) -> None:
        """A member hears that it is none, or not of that generation.

        Raises `Violation` if a request of it, from `granted`, was granted just before. Not where
        one that coordinates the group no more may have said so, as it has not heard of that.
        """
        is_sure = self._is_judged and now - granted < _SURE_SECONDS
        if is_sure and not self._has_former_coordinator(group):
            what = f"{member} hears at {now:.3f} that it is out, and was heard at {granted:.3f}"
            raise Violation("who is heard stays a member", group, what)

    def only(self, group: str, member: str, reads: Sequence[TopicPartition]) -> None:
        """A member reads no more than these of what it has read."""
        for key, (name, _) in list(self._held.items()):
            if name == member and key[0] == group and key[1] not in reads:
                del self._held[key]
