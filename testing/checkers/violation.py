"""What the checkers of replicas raise."""


class Violation(Exception):
    """A promise was broken at this very moment."""

    def __init__(self, invariant: str, group: str, what: str) -> None:
        super().__init__(f"{invariant}: {what} ({group})")
        self.invariant = invariant
        """Its name, the same for each time that it is broken."""
        self.group = group


def require(holds: bool, invariant: str, group: str, what: str) -> None:
    """Raise `Violation` unless the invariant holds."""
    if not holds:
        raise Violation(invariant, group, what)


def bounded(count: int, count_max: int, name: str, where: str) -> None:
    """Nothing that waits may grow without an end."""
    require(count <= count_max, "bounded", where, f"{count} {name}, at most {count_max} expected")
