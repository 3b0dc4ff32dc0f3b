"""One turn of the broker's loop: work that is done together, and what is done once at its end.

The reactor serves many sockets in a turn. Telling the disk, waking parked fetches and writing to
sockets pay for a system call or a search each, so they are put off to the end of the turn: what
ten requests caused is then done once.
"""

from collections.abc import Callable

Callback = Callable[[], None]


class Turn:
    """Runs callbacks in turns. Everything is on the loop's thread; callbacks must not raise."""

    __slots__ = ("_after", "_open")

    def __init__(self) -> None:
        self._open = False
        self._after: list[Callback] = []

    @property
    def is_open(self) -> bool:
        return self._open

    def run(self, callback: Callback) -> None:
        """Run `callback` as a turn, or as a part of the one that is running."""
        if self._open:
            callback()
            return
        self._open = True
        try:
            callback()
        finally:
            self._finish()

    def after(self, callback: Callback) -> None:
        """Run `callback` at the end of this turn; at once where there is none."""
        if self._open:
            self._after.append(callback)
        else:
            self.run(callback)

    def _finish(self) -> None:
        try:
            # What is put off while finishing is done in the next round, until nothing is left.
            while self._after:
                callbacks, self._after = self._after, []
                for callback in callbacks:
                    callback()
        finally:
            self._open = False
