"""What the coordinator of transactions leaves to whoever runs the broker."""

from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    timeout_max_ms: int = 15 * 60_000
    """The longest timeout that a producer may ask for."""
    id_expiration_ms: int = 7 * 24 * 3_600_000
    """When a transactional id that nobody uses is forgotten."""
