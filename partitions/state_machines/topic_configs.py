"""The configs that a topic can have, under Kafka's names, and `flush`, which is ours.

Tools read all configs of a topic, change one and write all back (trap M10), so every name that
Kafka 4 has is here. One that has no effect in Tidemark says so in its documentation; one that would
promise what Tidemark does not do takes only the value that promises nothing.
"""

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal

from tidemark.partitions.state_machines.config_table import (
    LONG_MAX,
    Fraction,
    ListOf,
    OneOf,
    Setting,
    Whole,
    YesNo,
    parse_all,
    setting,
    settings_of,
    whole_int,
)
from tidemark.partitions.state_machines.throttle_configs import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from tidemark.protocol.values import dataclass

DAY_MS: Final = 86_400_000
OBSERVERS: Final = "observers"
_NO_EFFECT: Final = "Kept for tools that set it; it has no effect in Tidemark."


@dataclass(frozen=True, kw_only=True)
class TopicConfig:
    """A topic's configs as values. Each field is the config of that name with dots for underscores.

    `-1` is no limit where the documentation says so.
    """

    cleanup_policy: tuple[str, ...] = setting(
        "cleanup.policy",
        ListOf(("delete", "compact")),
        "delete",
        "What happens to old records: delete removes whole segments by age and size, compact keeps "
        "the last record of each key, both together do both, and neither keeps everything.",
        synonym="log.cleanup.policy",
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level", whole_int(-1, 9), "-1", _NO_EFFECT
    )
    compression_lz4_level: int = setting("compression.lz4.level", whole_int(1, 17), "9", _NO_EFFECT)
    compression_type: str = setting(
        "compression.type",
        OneOf(("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")),
        "producer",
        "Batches are stored as producers compressed them, byte for byte, whatever this says.",
        synonym="compression.type",
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level", whole_int(-131072, 22), "3", _NO_EFFECT
    )
    delete_retention_ms: int = setting(
        "delete.retention.ms",
        Whole(0),
        str(DAY_MS),
        "How long the deletion of a key stays readable in a compacted topic.",
        synonym="log.cleaner.delete.retention.ms",
    )
    file_delete_delay_ms: int = setting(
        "file.delete.delay.ms",
        Whole(0),
        "60000",
        "Segments are removed as soon as their last reader is done. " + _NO_EFFECT,
        synonym="log.segment.delete.delay.ms",
    )
    flush: Literal["commit", "os"] = setting(
        "flush",
        OneOf(("commit", "os")),
        "commit",
        "What an acknowledged record has survived to: commit syncs it to the disk first, os leaves "
        "that to the operating system, so that a power cut may lose it and a crash of the broker "
        "does not.",
        synonym="log.flush",
    )
    flush_messages: int = setting(
        "flush.messages",
        Whole(1),
        str(LONG_MAX),
        "The flush config decides when records are synced. " + _NO_EFFECT,
        synonym="log.flush.interval.messages",
    )
    flush_ms: int = setting(
        "flush.ms",
        Whole(0),
        str(LONG_MAX),
        "The flush config decides when records are synced. " + _NO_EFFECT,
        synonym="log.flush.interval.ms",
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        FOLLOWER_REPLICAS,
        ListOf(),
        "",
        f"Which new replicas a broker's `{FOLLOWER_RATE}` is about: the partition and the broker "
        "that is to hold it, as in `0:4,1:5`, or `*` for all.",
    )
    index_interval_bytes: int = setting(
        "index.interval.bytes",
        whole_int(0),
        "4096",
        "How many bytes of log lie between two entries of its indexes.",
        synonym="log.index.interval.bytes",
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        LEADER_REPLICAS,
        ListOf(),
        "",
        f"Which partitions a broker's `{LEADER_RATE}` is about while it sends them to new "
        "replicas: the partition and the broker that leads it, as in `0:1,1:2`, or `*` for all.",
    )
    local_retention_bytes: int = setting("local.retention.bytes", Whole(-2), "-2", _NO_EFFECT)
    local_retention_ms: int = setting("local.retention.ms", Whole(-2), "-2", _NO_EFFECT)
    max_compaction_lag_ms: int = setting(
        "max.compaction.lag.ms",
        Whole(1),
        str(LONG_MAX),
        "The longest that a record may stay uncompacted in a compacted topic.",
        synonym="log.cleaner.max.compaction.lag.ms",
    )
    max_message_bytes: int = setting(
        "max.message.bytes",
        whole_int(0),
        "1048588",
        "The largest record batch that is taken, as it travels.",
        synonym="message.max.bytes",
    )
    message_timestamp_after_max_ms: int = setting(
        "message.timestamp.after.max.ms",
        Whole(0),
        "3600000",
        "How far ahead of the broker's clock a record's timestamp may be.",
        synonym="log.message.timestamp.after.max.ms",
    )
    message_timestamp_before_max_ms: int = setting(
        "message.timestamp.before.max.ms",
        Whole(0),
        str(LONG_MAX),
        "How far behind the broker's clock a record's timestamp may be.",
        synonym="log.message.timestamp.before.max.ms",
    )
    message_timestamp_type: str = setting(
        "message.timestamp.type",
        OneOf(("CreateTime", "LogAppendTime")),
        "CreateTime",
        "Whose clock a record's timestamp is: the producer's, or the broker's when it came.",
        synonym="log.message.timestamp.type",
    )
    min_cleanable_dirty_ratio: float = setting(
        "min.cleanable.dirty.ratio",
        Fraction(),
        "0.5",
        "How much of a compacted topic must be new before it is compacted again.",
        synonym="log.cleaner.min.cleanable.ratio",
    )
    min_compaction_lag_ms: int = setting(
        "min.compaction.lag.ms",
        Whole(0),
        "0",
        "The shortest that a record stays uncompacted in a compacted topic.",
        synonym="log.cleaner.min.compaction.lag.ms",
    )
    min_insync_replicas: int = setting(
        "min.insync.replicas",
        whole_int(1),
        "1",
        "How many replicas must hold a record before a producer with acks=all is answered; a "
        "majority always does. More than there are is all of them.",
        synonym="min.insync.replicas",
    )
    observers: int = setting(
        OBSERVERS,
        whole_int(-1),
        "-1",
        "How many brokers observe each partition: they hold a copy that consumers can read from, "
        "and have no vote. The controller chooses them; -1 leaves them to whoever names brokers.",
    )
    preallocate: bool = setting(
        "preallocate", YesNo(), "false", _NO_EFFECT, synonym="log.preallocate"
    )
    remote_log_copy_disable: bool = setting("remote.log.copy.disable", YesNo(), "false", _NO_EFFECT)
    remote_log_delete_on_disable: bool = setting(
        "remote.log.delete.on.disable", YesNo(), "false", _NO_EFFECT
    )
    remote_storage_enable: str = setting(
        "remote.storage.enable",
        OneOf(("false",)),
        "false",
        "Tidemark has no tiered storage: all segments are on the broker's disk.",
    )
    retention_bytes: int = setting(
        "retention.bytes",
        Whole(-1),
        "-1",
        "How large a partition may grow before its oldest segments are removed; -1 is no limit.",
        synonym="log.retention.bytes",
    )
    retention_ms: int = setting(
        "retention.ms",
        Whole(-1),
        str(7 * DAY_MS),
        "How old a segment's newest record may become before it is removed; -1 is no limit.",
        synonym="log.retention.ms",
    )
    segment_bytes: int = setting(
        "segment.bytes",
        whole_int(1024),
        str(2**30),
        "How large a segment becomes before the next one is begun.",
        synonym="log.segment.bytes",
    )
    segment_index_bytes: int = setting(
        "segment.index.bytes",
        whole_int(4),
        "10485760",
        "Index files are as large as their entries need. " + _NO_EFFECT,
        synonym="log.index.size.max.bytes",
    )
    segment_jitter_ms: int = setting(
        "segment.jitter.ms",
        Whole(0),
        "0",
        "By how much less than `segment.ms` a segment may be written to: each by another part of "
        "this, so that not all logs begin new ones at once.",
        synonym="log.roll.jitter.ms",
    )
    segment_ms: int = setting(
        "segment.ms",
        Whole(1),
        str(7 * DAY_MS),
        "How much later than its first batch a segment's batches may be, by their timestamps: a "
        "later one begins the next segment. One that gets nothing more is closed when it is so "
        "old; that is looked at every `log.retention.check.interval.ms`.",
        synonym="log.roll.ms",
    )
    unclean_leader_election_enable: bool = setting(
        "unclean.leader.election.enable",
        YesNo(),
        "false",
        "A leader is always one that holds all committed records. " + _NO_EFFECT,
        synonym="unclean.leader.election.enable",
    )

    @classmethod
    def from_overrides(
        cls, overrides: Mapping[str, str], defaults: Mapping[str, str] = MappingProxyType({})
    ) -> "TopicConfig":
        """The config of a topic with `overrides`, on a broker whose own `defaults` come second.

        Both are by topic config name. Raises `RequestError` INVALID_CONFIG for an unknown name or
        a value that the config does not take.
        """
        # Any: every value was made by its own field's kind.
        values: dict[str, Any] = parse_all(TOPIC_SETTINGS, {**defaults, **overrides})
        return cls(**values)

    @cached_property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @cached_property
    def deletes_old_segments(self) -> bool:
        return "delete" in self.cleanup_policy

    @cached_property
    def stamps_append_time(self) -> bool:
        """Whether the broker's clock is written into every batch."""
        return self.message_timestamp_type == "LogAppendTime"

    @cached_property
    def syncs_before_ack(self) -> bool:
        return self.flush == "commit"


TOPIC_SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(settings_of(TopicConfig))
"""Every topic config by name: type, default, meaning."""
