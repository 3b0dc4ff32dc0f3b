"""What a group's log is made of, as it travels."""

from collections.abc import Sequence

from tidemark.protocol.schema import (
    INT32,
    INT64,
    RECORDS,
    SizedRecords,
    Struct,
    array,
    nested,
    struct,
    wire,
)


@struct
class EpochStartData(Struct):
    """Who leads in an epoch, and who votes from there on."""

    leader: int = wire(INT32, "The broker that leads.")
    voters: Sequence[int] = wire(array(INT32), "The voters, ascending.")
    outgoing: Sequence[int] = wire(
        array(INT32), "The voters that are to be relieved, while the configuration is joint."
    )
    version: int = wire(
        INT64, "The version of the cluster's metadata that wished for these voters; -1 for none."
    )


@struct
class EpochRowData(Struct):
    """An epoch of a log, with its beginning."""

    epoch: int = wire(INT32, "The epoch.")
    start_offset: int = wire(INT64, "Where it begins.")
    begins: EpochStartData = wire(nested(EpochStartData), "Who leads and votes.")


@struct
class EntryData(Struct):
    """The beginning of an epoch, or record batches of one epoch."""

    epoch: int = wire(INT32, "The epoch.")
    base_offset: int = wire(INT64, "Where the entry begins.")
    end_offset: int = wire(INT64, "Where it ends, exclusive.")
    begins: EpochStartData | None = wire(
        nested(EpochStartData), "Of the beginning of an epoch; null for records.", null_since=0
    )
    records: bytes | memoryview | SizedRecords | None = wire(
        RECORDS, "Whole record batches, as they are stored; null for a beginning.", null_since=0
    )
