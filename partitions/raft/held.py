"""What a follower has said that it holds, and whether that counts.

It does not where the follower may have lost what it acknowledged: a replica that says that it is
not clean, or in doubt (`doubt.py`), and one that shows by what it refuses that it knows nothing of
its last process. Such a one counts anew once it holds all that its leader has by then.
"""

from __future__ import annotations

from tidemark.partitions.raft.marks import mark
from tidemark.partitions.raft.messages import AppendResponse
from tidemark.partitions.raft.replica import NEVER, NOWHERE
from tidemark.protocol.types import Position


class Held:
    """By one follower, as its leader knows it: up to `match`, as it has said in this epoch."""

    __slots__ = (
        "_clean_life",
        "_doubtful_life",
        "_is_asked",
        "_match_life",
        "clean_at",
        "doubted_at",
        "is_told",
        "life",
        "match",
    )

    def __init__(self) -> None:
        """Nothing is known."""
        self.match = NOWHERE
        self.clean_at: Position | None = None
        """An unclean follower does not count before it holds this."""
        self.doubted_at: Position | None = None
        """Where the log ended when its doubt was heard of. `None` once something newer is
        committed: from then on it counts as one that is unclean does."""
        self.is_told = True
        """Whether it has been told all that it needs to be clean."""
        # The latest that has answered, the latest that was in doubt, and the latest that was clean.
        self.life = self._doubtful_life = self._clean_life = 0
        self._match_life = 0  # in which it has said that it holds `match`
        # It was not clean, and may have crashed again since: first it says in which life it is.
        self._is_asked = False

    @property
    def counted(self) -> Position:
        """What this follower stands for when a majority is looked for."""
        clean_at = self.clean_at
        return self.match if clean_at is None or self.match >= clean_at else NOWHERE

    @property
    def is_doubtful(self) -> bool:
        """Whether it is in doubt, or has not said yet that it is no more."""
        return self.clean_at is not None and self._doubtful_life == self.life != 0

    # What it says

    def hear(self, response: AppendResponse, last: Position, sent_after: Position | None) -> bool:
        """A follower that may have lost what it acknowledged begins to count anew.

        Returns whether the answer is worth anything: one from before the loss is not. `last` is
        where this leader's log ends, `sent_after` where the first request in flight begins.

        Once it has all that this leader has by now, it has all that it can have acknowledged to it:
        an acknowledgement of something later cannot have been given before the loss.
        """
        was_asked = has_crashed = False
        if response.life:  # 0 in an answer by the short way, which is always of this life
            if response.life < self.life:
                mark("answer_of_an_earlier_life")
                return False
            has_crashed = self.life < response.life
            self.life = response.life
            if self._is_outdated(response, sent_after):
                mark("answer_from_before_it_was_clean")
                return False
            was_asked, self._is_asked = self._is_asked, False
            if response.in_doubt:
                self._note_doubt(last)
                return True
            self._forget_doubt()  # it was ended by this leader, in an earlier epoch
        if not response.is_clean:
            if self.clean_at is None or has_crashed:
                mark("follower_unclean")
                self._begin_anew(last)
        elif self.clean_at is not None:
            if response.match is not None and response.match >= self.clean_at:
                self._count_again()
            elif not was_asked:
                mark("answer_from_before_the_loss")
                return False
        if response.is_clean and response.life:
            self._clean_life = response.life
        return True

    def _is_outdated(self, response: AppendResponse, sent_after: Position | None) -> bool:
        """Whether a follower that is clean said this, that it is not, before it was.

        A power loss ends a life. Who has left and come back has the same one, but then it is what
        is in flight now that it answers so. To believe an old word of it would make it unclean
        again, and nobody would be left to elect another leader if this one went then.
        """
        if response.is_clean or self.clean_at is not None or response.life != self._clean_life:
            return False
        return sent_after != response.prev

    def grow(self, match: Position) -> bool:
        """It holds up to there durably. Returns whether that is news."""
        if match <= self.match:
            return False
        self.match, self._match_life = match, self.life
        return True

    def refuse(self, response: AppendResponse, common: Position, last: Position) -> Position:
        """It says that the logs part behind `common`. Returns where they can part."""
        if not response.is_clean:  # it has lost what it acknowledged, or has lost more
            self._begin_anew(last)
        if common >= self.match:
            return common
        if self._match_life < self.life:
            # It is another process, which knows nothing of what its last one acknowledged:
            # its files are an older copy, for example. It says itself that it is clean.
            mark("follower_forgot")
            self._begin_anew(last)
            return common
        mark("refusal_below_match")
        return self.match

    # What it is told

    @property
    def clean_at_to_tell(self) -> tuple[Position | None, int]:
        """What the follower has to know to be clean, and in which life that ends its doubt."""
        is_known = self.clean_at is not None and self.doubted_at is None and not self._is_asked
        return (self.clean_at, self._doubtful_life) if is_known else (None, 0)

    def told(self) -> None:
        """That is under way to it."""
        if not self._is_asked:
            self.is_told = True

    def ask(self) -> None:
        """What was under way between the two is lost.

        Of one that is not clean it is not known whether it has crashed again, and lost more: it
        does not count, and is not told when it will be clean, before it has said in which life it
        is. If it is the same one, it has lost nothing: it may have become clean, and its word for
        that may be what was lost.
        """
        if self.clean_at is not None:
            self.match = NOWHERE
            self._is_asked, self.is_told = True, False

    # Doubts

    def begin_doubt(self, life: int, last: Position) -> None:
        """It may have forgotten what it promised; nothing up to `last` is new enough to end it."""
        mark("follower_in_doubt")
        self.life = self._doubtful_life = life
        self.doubted_at = last
        self.clean_at, self.match = NEVER, NOWHERE

    def end_doubt(self, committed: Position) -> None:
        """Something newer is committed; it counts once it holds that."""
        self.doubted_at, self.clean_at = None, committed
        self.is_told = False

    def _note_doubt(self, last: Position) -> None:
        if self._doubtful_life < self.life:
            self.begin_doubt(self.life, last)
        elif self.clean_at is None:  # it has not heard yet, or not recorded, that its doubt ended
            self._begin_anew(last)

    def _forget_doubt(self) -> None:
        if self.doubted_at is not None:
            self.doubted_at = None
            self._count_again()

    def _begin_anew(self, last: Position) -> None:
        self.match = NOWHERE
        if self.doubted_at is None:
            self.clean_at, self.is_told = last, False

    def _count_again(self) -> None:
        self.clean_at, self._is_asked, self.is_told = None, False, True
