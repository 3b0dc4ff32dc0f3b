"""What every client writes and must get back, to the byte."""

from dataclasses import dataclass

TIMESTAMP_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A record as a client states it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = TIMESTAMP_MS


SAMPLES = (
    Sample(key=b"plain", value=b"text"),
    Sample(key=None, value=b"no key"),
    Sample(key=b"tombstone", value=None),
    Sample(key=b"", value=b""),
    Sample(key=bytes(range(256)), value=bytes(reversed(range(256)))),
    Sample(key=b"headers", value=b"h", headers=(("one", b"1"), ("one", b"again"), ("empty", b""))),
    Sample(key=b"later", value=b"t", timestamp_ms=TIMESTAMP_MS + 5),
    Sample(key=b"large", value=b"x" * 200_000),
)

CODECS = ["gzip", "snappy", "lz4", "zstd"]
COMPRESSIBLE = [b"tidemark " * 100 + str(number).encode() for number in range(50)]
