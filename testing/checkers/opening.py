"""What a start finds of a log."""

from tidemark.protocol.types import NodeId, Offset
from tidemark.testing.checkers.violation import Violation


def keeps_its_beginning(group: str, node: NodeId, start: Offset, recorded: Offset) -> None:
    """A log begins where it was recorded to begin, or before: nothing goes but what is given up."""
    if start > recorded:
        what = f"the log of {node} begins at {start}, and nothing below {recorded} was given up"
        raise Violation("a log keeps its beginning", group, what)
