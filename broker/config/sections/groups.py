"""Consumer groups and their commits."""

from typing import Final

import attrs

from tidemark.broker.config.fields import setting
from tidemark.partitions.state_machines.cluster_topics import PARTITIONS_MAX
from tidemark.partitions.state_machines.config_table import INT_MAX, ListOf, OneOf, Whole, whole_int
from tidemark.partitions.state_machines.groups.consumer.assignors import ASSIGNORS

_SECTION: Final = "Consumer groups"


@attrs.frozen(kw_only=True, slots=False, repr=False, eq=False)
class Groups:
    offsets_topic_num_partitions: int = setting(
        "offsets.topic.num.partitions",
        whole_int(1, PARTITIONS_MAX),
        8,
        "Partitions of `__consumer_offsets`. It cannot be changed once the topic is there.",
        section=_SECTION,
    )
    offsets_topic_replication_factor: int = setting(
        "offsets.topic.replication.factor",
        whole_int(1, 32767),
        3,
        "Replicas of `__consumer_offsets`, or one on each broker while there are fewer: the topic "
        "is made when a client first looks for a group, and gets more once more brokers are there.",
        section=_SECTION,
    )
    offsets_topic_segment_bytes: int = setting(
        "offsets.topic.segment.bytes",
        whole_int(1024),
        100 * 1024 * 1024,
        "The segment size of `__consumer_offsets`.",
        section=_SECTION,
    )
    offsets_retention_minutes: int = setting(
        "offsets.retention.minutes",
        whole_int(1),
        7 * 24 * 60,
        "How long the committed offsets of a group without members are kept.",
        section=_SECTION,
    )
    offsets_retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms",
        Whole(1),
        600_000,
        "How often committed offsets are looked through for expired ones.",
        section=_SECTION,
    )
    offset_metadata_max_bytes: int = setting(
        "offset.metadata.max.bytes",
        whole_int(0),
        4096,
        "The longest text that may be stored with a committed offset.",
        section=_SECTION,
    )
    group_initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms",
        whole_int(0),
        3000,
        "How long an empty group waits for more members before its first assignment.",
        section=_SECTION,
    )
    group_min_session_timeout_ms: int = setting(
        "group.min.session.timeout.ms",
        whole_int(1),
        6000,
        "The shortest session timeout a member may ask for.",
        section=_SECTION,
    )
    group_max_session_timeout_ms: int = setting(
        "group.max.session.timeout.ms",
        whole_int(1),
        1_800_000,
        "The longest session timeout a member may ask for.",
        section=_SECTION,
    )
    group_consumer_session_timeout_ms: int = setting(
        "group.consumer.session.timeout.ms",
        whole_int(1),
        45_000,
        "How long a member of the consumer protocol may be silent before it is taken out.",
        section=_SECTION,
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        "group.consumer.heartbeat.interval.ms",
        whole_int(1),
        5_000,
        "How often members of the consumer protocol are told to send heartbeats. A member that "
        "has to give up partitions, or waits for some, is told to send them twice a second.",
        section=_SECTION,
    )
    group_consumer_max_size: int = setting(
        "group.consumer.max.size",
        whole_int(1),
        INT_MAX,
        "Members that one group of the consumer protocol may have.",
        section=_SECTION,
    )
    group_consumer_assignors: tuple[str, ...] = setting(
        "group.consumer.assignors",
        ListOf(tuple(ASSIGNORS), empty_allowed=False),
        ("uniform", "range"),
        "The assignors that members of the consumer protocol may ask for. The first is that of "
        "groups whose members ask for none.",
        section=_SECTION,
    )
    group_consumer_migration_policy: str = setting(
        "group.consumer.migration.policy",
        OneOf(("bidirectional", "upgrade", "downgrade", "disabled")),
        "bidirectional",
        "Which way a group may change its protocol while it has members: from classic to consumer "
        "when the first member of the consumer protocol joins (`upgrade`), back when the last has "
        "left (`downgrade`), both or neither. A group without members always may.",
        section=_SECTION,
    )
    group_max_size: int = setting(
        "group.max.size",
        whole_int(1),
        INT_MAX,
        "Members that one group may have.",
        section=_SECTION,
    )
