"""Which partition of `__consumer_offsets` a group belongs to: every broker and tool must agree."""


def partition_of(group_id: str, partitions: int) -> int:
    """Kafka's choice: the absolute value of Java's hash of the id, modulo the partitions."""
    hashed = java_hash(group_id)
    # Java has no absolute value of its smallest int; Kafka takes 0.
    return 0 if hashed == -(2**31) else abs(hashed) % partitions


def java_hash(text: str) -> int:
    """`String.hashCode`: a polynomial over UTF-16 code units, as a signed 32-bit number."""
    hashed = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFF_FFFF
    return hashed - 2**32 if hashed >= 2**31 else hashed
