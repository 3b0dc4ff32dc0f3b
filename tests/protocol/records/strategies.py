"""Record batches for hypothesis."""

from hypothesis import strategies as st

from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.records import Record

TIMESTAMPS = st.integers(-1, 2**48)
# Short ones with any content, and long ones whose lengths take two and three bytes.
BYTES = (
    st.none()
    | st.binary(max_size=10)
    | st.integers(60, 300).map(lambda size: b"x" * size)
    | st.integers(8190, 8200).map(lambda size: b"y" * size)
)
HEADERS = st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=2).map(tuple)
CODECS = st.sampled_from(Compression)


def records_of(
    *,
    keys: st.SearchStrategy[bytes | None] = BYTES,
    values: st.SearchStrategy[bytes | None] = BYTES,
    headers: st.SearchStrategy[tuple[tuple[str, bytes | None], ...]] = HEADERS,
    timestamps: st.SearchStrategy[int] = TIMESTAMPS,
) -> st.SearchStrategy[Record]:
    return st.builds(
        Record,
        offset=st.just(0),
        timestamp_ms=timestamps,
        key=keys,
        value=values,
        headers=headers,
    )


RECORDS = st.lists(records_of(), min_size=1, max_size=5)
