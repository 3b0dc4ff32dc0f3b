"""Idempotent and transactional producers."""

from typing import Final

import attrs

from tidemark.broker.config.fields import setting
from tidemark.partitions.state_machines.cluster_topics import PARTITIONS_MAX
from tidemark.partitions.state_machines.config_table import Whole, whole_int

_SECTION: Final = "Producers"


@attrs.frozen(kw_only=True, slots=False, repr=False, eq=False)
class Producers:
    producer_id_expiration_ms: int = setting(
        "producer.id.expiration.ms",
        whole_int(1),
        86_400_000,
        "How long a partition remembers an idempotent producer that has gone quiet.",
        section=_SECTION,
    )
    transaction_max_timeout_ms: int = setting(
        "transaction.max.timeout.ms",
        whole_int(1),
        900_000,
        "The longest transaction timeout a producer may ask for.",
        section=_SECTION,
    )
    transaction_state_log_num_partitions: int = setting(
        "transaction.state.log.num.partitions",
        whole_int(1, PARTITIONS_MAX),
        8,
        "Partitions of `__transaction_state`. It cannot be changed once the topic is there.",
        section=_SECTION,
    )
    transaction_state_log_replication_factor: int = setting(
        "transaction.state.log.replication.factor",
        whole_int(1, 32767),
        3,
        "Replicas of `__transaction_state`, or one on each broker while there are fewer: the topic "
        "is made when a transactional producer first comes, and gets more once more brokers are "
        "there.",
        section=_SECTION,
    )
    transaction_state_log_segment_bytes: int = setting(
        "transaction.state.log.segment.bytes",
        whole_int(1024),
        100 * 1024 * 1024,
        "The segment size of `__transaction_state`.",
        section=_SECTION,
    )
    transactional_id_expiration_ms: int = setting(
        "transactional.id.expiration.ms",
        whole_int(1),
        7 * 24 * 3_600_000,
        "How long a transactional id is remembered that nobody uses.",
        section=_SECTION,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        Whole(1),
        3_600_000,
        "How often transactional ids are looked through for expired ones.",
        section=_SECTION,
    )
