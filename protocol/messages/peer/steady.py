"""Appends to groups that are in step, and their answers: many rows of integers in one field.

What is in a row of AppendRequests besides is the same for all of these: the entry before the run is
of the run's epoch, and so is the leader's last committed one. Nobody has to become clean, and
nothing has gone wrong. A structure for each group would cost more than what it says.
"""

from tidemark.protocol.messages.peer.versions import SPOKEN
from tidemark.protocol.schema import BYTES, RECORDS, Message, SizedRecords, message, wire


@message(versions=SPOKEN, straight_line=True)
class SteadyAppends(Message):
    """Sends a run of batches each to many groups, whose followers are where the leader thinks."""

    rows: bytes = wire(
        BYTES,
        "52 bytes for each group: topic id, partition int32, the leader's epoch int32, where the "
        "run begins int64 and ends int64, up to where the leader's log is committed int64, how "
        "many bytes of `records` the run has int32.",
    )
    records: bytes | memoryview | SizedRecords = wire(
        RECORDS, "The runs' record batches, as they are stored, in the order of the rows."
    )


@message(versions=SPOKEN, straight_line=True)
class SteadyAnswers(Message):
    """Answers to SteadyAppends, once the runs are durable; only of followers that are clean."""

    rows: bytes = wire(
        BYTES,
        "40 bytes for each group: topic id, partition int32, the follower's epoch int32, where "
        "the run began int64, where the last entry that is durable now ends int64.",
    )
