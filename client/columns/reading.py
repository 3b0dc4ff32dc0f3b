"""What a fetch brought, as Arrow columns: for many records, five times as fast as one by one."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Final, NamedTuple

import pyarrow as pa

from tidemark.client.blocking.kept import KeptConnections
from tidemark.client.blocking.reading import BEGIN_BEHIND, read_batches
from tidemark.client.offsets import Isolation
from tidemark.client.reading import before_corrupt, corrupt_in, visible_batches
from tidemark.client.records import FetchedBatches
from tidemark.client.settings import ClientSettings
from tidemark.protocol.buffers import Buffers
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.columns import SCHEMA, decode_columns
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.types import Offset, TopicPartition

COLUMNS: Final = tuple(SCHEMA.names)
FETCH_BYTES: Final = 4 << 20
"""Some 40,000 records of 100 bytes, or 4,000 of a kilobyte: numpy's fixed costs no longer count."""
PIECE_BYTES: Final = 128 << 20
"""To what batches may inflate together; one that is larger is a piece of its own."""
BATCH_BYTES_MAX: Final = 1 << 30
"""To what one batch may inflate."""


def read_columns(
    bootstrap: str | Sequence[str],
    topic_partition: TopicPartition,
    start: Offset | int,
    end: Offset | int,
    *,
    columns: Sequence[str] = COLUMNS,
    settings: ClientSettings | None = None,
    fetch_bytes: int = FETCH_BYTES,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    connections: KeptConnections | None = None,
    patience_seconds: float | None = None,
) -> Generator[pa.RecordBatch]:
    """The records with offsets from `start` to `end` (exclusive), as columns, a fetch at a time.

    On a blocking socket; see `tidemark.client.blocking.read_batches` for what it waits for and what
    it raises, and `tidemark.protocol.records.columns.SCHEMA` for the columns. Also raises
    `CorruptBatch`, which says where it is, once all that lies before it was given.
    """
    memory = Buffers()
    with closing(
        read_batches(
            bootstrap,
            topic_partition,
            start,
            end,
            settings=settings,
            fetch_bytes=fetch_bytes,
            isolation=isolation,
            connections=connections,
            memory=memory,
            patience_seconds=patience_seconds,
        )
    ) as fetches:
        for fetched in fetches:
            pieces = _pieces(fetched, Offset(end), columns, isolation, memory)
            # Both may be written over as soon as nobody else has them.
            del fetched
            for batch in pieces:
                if batch.num_rows:
                    yield batch
                del batch


def _pieces(
    fetched: FetchedBatches,
    end: Offset,
    columns: Sequence[str],
    isolation: Isolation,
    memory: Buffers,
) -> Iterator[pa.RecordBatch]:
    """What can be read of a fetch. Raises `CorruptBatch` once all that lies before it was given."""
    try:
        visible = _visible(fetched, isolation)
    except CorruptBatch as error:  # a marker
        whole = before_corrupt(fetched, error)
        if whole is not None:
            yield from _pieces(whole, end, columns, isolation, memory)
        raise corrupt_in(fetched, error, go_on=BEGIN_BEHIND) from error
    try:
        yield from _decode_pieces(visible.data, fetched.fetch_offset, end, columns, memory)
    except CorruptBatch as error:
        raise corrupt_in(fetched, visible.placed(error), go_on=BEGIN_BEHIND) from error


def _decode_pieces(
    data: memoryview, start: Offset, end: Offset, columns: Sequence[str], memory: Buffers
) -> Iterator[pa.RecordBatch]:
    """All at once, nearly always; but a few megabytes may inflate to gigabytes."""
    at, stop, bytes_max = 0, len(data), PIECE_BYTES
    while at < len(data):
        part = data[at:stop]
        try:
            piece = decode_columns(
                part,
                start=start,
                end=end,
                columns=columns,
                bytes_max=max(bytes_max, len(part)),
                memory=memory,
            )
        except CorruptBatch as error:
            # Damaged, or too much for a piece: what lies before it comes first, then it alone.
            if error.at:
                stop = at + error.at
            elif bytes_max == PIECE_BYTES:
                _, header = next(iter_headers(part))
                stop, bytes_max = at + header.size_bytes, BATCH_BYTES_MAX
            else:
                raise CorruptBatch(at, error.what) from error
            continue
        del part
        yield piece
        del piece
        at, stop, bytes_max = stop, len(data), PIECE_BYTES


def to_columns(
    fetched: FetchedBatches,
    *,
    end: Offset | None = None,
    columns: Sequence[str] = COLUMNS,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    memory: Buffers | None = None,
) -> pa.RecordBatch:
    """The records of a fetch from its position on, below `end`, as columns.

    With `Consumer.fetch_batches` this is how a trio consumer reads columns. Raises `CorruptBatch`:
    all of the fetch is refused, and it says where the damaged batch begins; also for more than
    1 GiB of records, to which a fetch can inflate.
    """
    try:
        visible = _visible(fetched, isolation)
    except CorruptBatch as error:
        raise corrupt_in(fetched, error, go_on=BEGIN_BEHIND) from error
    try:
        return decode_columns(
            visible.data, start=fetched.fetch_offset, end=end, columns=columns, memory=memory
        )
    except CorruptBatch as error:
        raise corrupt_in(fetched, visible.placed(error), go_on=BEGIN_BEHIND) from error


class _Visible(NamedTuple):
    """The batches that a reader is to see, back to back."""

    data: memoryview
    places: Sequence[tuple[int, int]] = ()
    """Where each lay in what was fetched, and how long it is; none if it is just that."""

    def placed(self, error: CorruptBatch) -> CorruptBatch:
        """The same, by its place in what was fetched."""
        at = error.at
        for place, size in self.places:
            if at < size:
                return CorruptBatch(place + at, error.what)
            at -= size
        return error


def _visible(fetched: FetchedBatches, isolation: Isolation) -> _Visible:
    """Raises `CorruptBatch` for a marker that is damaged."""
    if not fetched.aborted:
        return _Visible(fetched.data)
    places = [
        (at, header.size_bytes)
        for at, header in visible_batches(fetched.data, fetched.aborted, isolation)
    ]
    joined = b"".join(fetched.data[at : at + size] for at, size in places)
    return _Visible(memoryview(joined), places)
