"""State that follows from a log's batches, such as who produced what, and how it hears of them.

The log knows nothing of that state. Its owner hands in functions, which are called with what is in
the log when it is opened, and again when a truncation has made the state wrong.
"""

from collections.abc import Callable, Iterable

from tidemark.partitions.storage.segment import Segment
from tidemark.protocol.records.header import CONTROL_BIT, BatchHeader
from tidemark.protocol.types import Offset
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedState:
    """The functions by which its owner hears of a log's batches."""

    load: Callable[[bytes], None] | None
    """Replace the state by a snapshot's; a `TidemarkError` makes the next older one be taken.
    `None`: there are none, all headers are wanted."""
    on_batch: Callable[[BatchHeader], None]
    on_control: Callable[[BatchHeader, bytes], None] | None = None
    """Gets the control batches instead, whole: what they say is not in their headers."""

    def tell(self, segment: Segment, position: int, header: BatchHeader) -> None:
        """Hand over the batch that lies there."""
        if header.attributes & CONTROL_BIT and self.on_control is not None:
            self.on_control(header, segment.read_batch(position, header))
        else:
            self.on_batch(header)


def tell_batches(segments: Iterable[Segment], start: Offset, state: DerivedState) -> None:
    """Hand over all batches from an offset on, by their headers."""
    for segment in segments:
        if segment.end_offset > start:
            for position, header in segment.batches_from(segment.position_of(start)):
                state.tell(segment, position, header)
