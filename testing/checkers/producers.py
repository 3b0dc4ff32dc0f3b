"""What whoever leads knows of idempotent producers: else it takes again what is in the log."""

from tidemark.partitions.state_machines.producer_entry import SEQUENCE_MASK, Producer
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import NodeId
from tidemark.testing.checkers.violation import require


def check_known(group: str, node: NodeId, newest: BatchHeader, known: Producer | None) -> None:
    """A leader that has a producer's newest committed batch knows of it, or of a later one.

    What was lost of the log's beginning does not matter: the producer may still be waiting for an
    answer, and send the batch again.
    """
    epoch, last = newest.producer_epoch, newest.last_sequence
    what = f"{node} knows nothing of producer {newest.producer_id} at {newest.base_offset}"
    if known is not None:
        what = (
            f"{node} awaits {known.next_sequence} in epoch {known.epoch} of producer "
            f"{newest.producer_id}, of which {last} in epoch {epoch} is committed"
        )
    is_so = known is not None and (
        known.epoch > epoch or (known.epoch == epoch and _is_behind(last, known.next_sequence))
    )
    require(is_so, "a leader knows what producers have sent", group, what)


def _is_behind(last: int, following: int) -> bool:
    """Whether a sequence comes before another; they begin anew at 2^31."""
    return 0 < (following - last) & SEQUENCE_MASK <= SEQUENCE_MASK // 2
