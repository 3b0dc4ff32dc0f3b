"""Which partition each row goes to, and rows as pieces of one partition. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidemark.client.partitioner import murmur2
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.values import dataclass

_M: Final = np.uint32(0x5BD1E995)
_SEED: Final = np.uint32(0x9747B28C)
_LONG_KEY_BYTES: Final = 256
"""Longer keys are hashed one by one: each four bytes are a round for all keys that have them."""
_ROW_OVERHEAD_BYTES: Final = 24


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows for one partition, in their order."""

    topic: str
    partition: int
    rows: pa.RecordBatch


def check_schema(schema: pa.Schema) -> None:
    """Raise `ConfigError` for a column whose type does not fit its name."""
    for name, (what, fits) in _FITTING.items():
        if name in schema.names and not fits(schema.field(name).type):
            raise ConfigError(f"the column {name} is {schema.field(name).type}, not {what}")


def _is_bytes(type_: pa.DataType) -> bool:
    return any(
        fits(type_)
        for fits in (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_null,
        )
    )


def _is_headers(type_: pa.DataType) -> bool:
    if not (pa.types.is_list(type_) and pa.types.is_struct(type_.value_type)):
        return False
    return [field.name for field in type_.value_type] == ["key", "value"] and all(
        _is_bytes(field.type) for field in type_.value_type
    )


_FITTING: Final[Mapping[str, tuple[str, Callable[[pa.DataType], bool]]]] = {
    "key": ("binary and not a string", _is_bytes),
    "value": ("binary and not a string", _is_bytes),
    "topic": ("a string", _is_bytes),
    "partition": ("an int", pa.types.is_integer),
    "headers": ("lists of structs (key string, value binary)", _is_headers),
}


def murmur2_partitions(keys: pa.BinaryArray, partitions: int) -> NDArray[np.int32]:
    """Java's placement of each key (`murmur2_partition`), all at once. Nulls get any."""
    count = len(keys)
    bounds = np.frombuffer(keys.buffers()[1], np.int32, count + 1, keys.offset * 4).astype(np.int64)
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    data = np.concatenate([data[: bounds[-1]], np.zeros(4, np.uint8)])  # room for the last word
    hashes = _murmur2(data, bounds[:-1], np.diff(bounds))
    return ((hashes & np.uint32(0x7FFFFFFF)) % np.uint32(partitions)).astype(np.int32)


def _murmur2(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint32]:
    words = np.ndarray((len(data) - 3,), "<u4", buffer=data.data, strides=(1,))
    hashes: NDArray[np.uint32] = _SEED ^ lengths.astype(np.uint32)
    # The longest first, so that those that still have a word are always the front.
    order = np.argsort(-lengths, kind="stable")
    starts, sorted_lengths, h = starts[order], lengths[order], hashes[order]
    long = int(np.searchsorted(-sorted_lengths, -_LONG_KEY_BYTES))
    for at in range(0, int(sorted_lengths[long:].max(initial=0)) & ~3, 4):
        having = int(np.searchsorted(-sorted_lengths, -(at + 3)))
        k = words[starts[:having] + at] * _M
        k = (k ^ (k >> np.uint32(24))) * _M
        h[:having] = (h[:having] * _M) ^ k
    rest = sorted_lengths & 3
    tails = words[np.minimum(starts + (sorted_lengths & ~3), len(words) - 1)]
    tails &= (np.uint32(1) << (rest << 3).astype(np.uint32)) - np.uint32(1)
    h = np.where(rest > 0, (h ^ tails) * _M, h)
    h = (h ^ (h >> np.uint32(13))) * _M
    h ^= h >> np.uint32(15)
    for index in range(long):
        start = starts[index]
        h[index] = murmur2(data[start : start + sorted_lengths[index]].tobytes())
    hashes[order] = h
    return hashes


def place(rows: pa.RecordBatch, topic: str, partitions: int, *, keyless: int) -> NDArray[np.int32]:
    """The partition of each row of a topic.

    It is the column `partition`'s where that is not null, else the key's; `keyless` where there is
    no key. Raises `ConfigError` for a partition that the topic does not have.
    """
    placed = np.full(rows.num_rows, keyless, np.int32)
    names = rows.schema.names
    if "key" in names and rows["key"].null_count < rows.num_rows:
        keys = rows["key"].cast(pa.binary())
        placed = np.where(
            keys.is_valid().to_numpy(zero_copy_only=False),
            murmur2_partitions(keys, partitions),
            placed,
        )
    if "partition" in names and rows["partition"].null_count < rows.num_rows:
        chosen = rows["partition"].cast(pa.int32())
        placed = np.where(
            chosen.is_valid().to_numpy(zero_copy_only=False),
            chosen.fill_null(0).to_numpy(),
            placed,
        )
        lowest, highest = int(placed.min()), int(placed.max())
        if lowest < 0 or highest >= partitions:
            raise ConfigError(
                f"the column partition has {lowest if lowest < 0 else highest}, but the topic"
                f" {topic} has the partitions 0 to {partitions - 1}; leave it null to have the key"
                " decide"
            )
    return placed


def split_by_topic(rows: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each topic: of `topic` if it is given, else of the column `topic`."""
    if topic is not None:
        yield topic, rows
        return
    topics = rows["topic"].cast(pa.string())
    if topics.null_count:
        raise ConfigError("a row has no topic; fill the column topic, or set the option topic")
    names = pc.unique(topics).to_pylist()
    for name in names:
        yield name, rows if len(names) == 1 else rows.filter(pc.equal(topics, name))


def split_by_partition(
    rows: pa.RecordBatch, topic: str, placed: NDArray[np.int32], bytes_max: int
) -> Iterator[Piece]:
    """The rows of each partition, in pieces that are about `bytes_max` long when they are encoded.

    A row that is longer gets a piece for itself.
    """
    first = int(placed[0])
    if (placed == first).all():
        yield from _in_pieces(rows, topic, first, bytes_max)
        return
    order = np.argsort(placed, kind="stable")
    bounds = np.flatnonzero(np.diff(placed[order])) + 1
    for begin, end in zip([0, *bounds.tolist()], [*bounds.tolist(), len(order)], strict=True):
        own = rows.take(pa.array(order[begin:end]))
        yield from _in_pieces(own, topic, int(placed[order[begin]]), bytes_max)


def _in_pieces(rows: pa.RecordBatch, topic: str, partition: int, bytes_max: int) -> Iterator[Piece]:
    ends = np.cumsum(row_bytes(rows))
    begin = 0
    while begin < rows.num_rows:
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + bytes_max, side="right")))
        yield Piece(topic, partition, rows[begin:end])
        begin = end


def row_bytes(rows: pa.RecordBatch) -> NDArray[np.int64]:
    """About how many bytes each row takes in a batch, a little more rather than less."""
    sizes = np.full(rows.num_rows, _ROW_OVERHEAD_BYTES, np.int64)
    for name in ("key", "value"):
        if name in rows.schema.names:
            sizes += _lengths(rows[name])
    if "headers" in rows.schema.names:
        headers = rows["headers"]
        pairs = headers.flatten()
        if len(pairs):
            per_pair = sum((_lengths(field) for field in pairs.flatten()), np.int64(10))
            ends = np.concatenate([[0], np.cumsum(per_pair)])
            counts = pc.list_value_length(headers).fill_null(0).to_numpy().astype(np.int64)
            upto = np.cumsum(counts)
            sizes += ends[upto] - ends[upto - counts]
    return sizes


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    lengths = pc.binary_length(column.cast(pa.binary())).fill_null(0)
    result: NDArray[np.int64] = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
    return result
