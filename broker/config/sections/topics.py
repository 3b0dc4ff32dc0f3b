"""Topics and their logs, all together."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from tidemark.broker.config.fields import setting
from tidemark.partitions.state_machines.cluster_topics import PARTITIONS_MAX
from tidemark.partitions.state_machines.config_table import Whole, YesNo, whole_int

_SECTION: Final = "Topics"


@attrs.frozen(kw_only=True, slots=False, repr=False, eq=False)
class Topics:
    num_partitions: int = setting(
        "num.partitions",
        whole_int(1, PARTITIONS_MAX),
        4,
        "Partitions of a topic that is created without saying how many.",
        section=_SECTION,
    )
    default_replication_factor: int = setting(
        "default.replication.factor",
        whole_int(1, 32767),
        1,
        "Replicas of a topic that is created without saying how many.",
        section=_SECTION,
    )
    auto_create_topics_enable: bool = setting(
        "auto.create.topics.enable",
        YesNo(),
        True,
        "Whether a topic is created when a client first asks for it by name.",
        section=_SECTION,
    )
    delete_topic_enable: bool = setting(
        "delete.topic.enable",
        YesNo(),
        True,
        "Whether topics can be deleted.",
        section=_SECTION,
    )
    partitions_max: int = setting(
        "partitions.max",
        whole_int(1),
        20_000,
        "The most partitions that a broker is given: each takes memory and file descriptors. "
        "The cluster's own topics are created even beyond that. The setting of the broker that "
        "leads the cluster's metadata is in force: set all brokers alike.",
        section=_SECTION,
    )
    log_retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms",
        Whole(1),
        300_000,
        "How often all logs are looked through for segments past their retention, and for those "
        "that get nothing more and are old enough to be closed (`segment.ms`, "
        "`max.compaction.lag.ms`).",
        section=_SECTION,
    )
    log_cleaner_enable: bool = setting(
        "log.cleaner.enable",
        YesNo(),
        True,
        "Whether compacted topics are compacted. Without it they grow, `__consumer_offsets` too.",
        section=_SECTION,
    )
    log_cleaner_backoff_ms: int = setting(
        "log.cleaner.backoff.ms",
        Whole(1),
        15_000,
        "How often compacted topics are searched for logs that are dirty enough to be compacted.",
        section=_SECTION,
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        "log.cleaner.dedupe.buffer.size",
        Whole(1 << 20),
        128 << 20,
        "The memory for the keys of one compaction, which is at work on one log at a time: a key "
        "takes 256 bytes. What has more keys than fit is compacted in several runs.",
        section=_SECTION,
    )
    log_cleaner_io_max_bytes_per_second: int = setting(
        "log.cleaner.io.max.bytes.per.second",
        Whole(0),
        0,
        "The most bytes a second that compaction reads and writes, together; 0 is no limit.",
        section=_SECTION,
    )
    topic_defaults: Mapping[str, str] = MappingProxyType({})
    """Topic configs by Kafka's topic-level name, for topics that do not set their own."""
