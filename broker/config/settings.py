"""Every setting of a broker: its name, its values, its default and what it is for.

This is the only table of them. The configuration reference is generated from it, and
DescribeConfigs answers from it. A field's name is the setting's name with underscores for dots.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import attrs

from tidemark.broker.config.addresses import Address, Endpoint, Listener, SecurityProtocol
from tidemark.broker.config.fields import Setting, setting, settings_of
from tidemark.broker.config.kinds import (
    AddressList,
    AddressText,
    Endpoints,
    Folder,
    Optionally,
    Pairs,
    Text,
)
from tidemark.broker.config.users import User, Users
from tidemark.partitions.state_machines.config_table import (
    INT_MAX,
    ListOf,
    OneOf,
    Whole,
    YesNo,
    whole_int,
)
from tidemark.partitions.state_machines.groups.consumer.assignors import ASSIGNORS

BROKER: Final = "The broker"
CLUSTER: Final = "The cluster"
CONNECTIONS: Final = "Connections and memory"
BALANCING: Final = "Balancing leaders"
TOPICS: Final = "Topics"
GROUPS: Final = "Consumer groups"
PRODUCERS: Final = "Producers"
OBSERVING: Final = "Metrics, health and logs"
SECURITY: Final = "Security"

FAILURE_TIMEOUT_MS_MIN: Final = 300
"""Three heartbeats."""


@attrs.frozen(kw_only=True)
class BrokerSettings:
    """A broker's configuration, checked. Build it with `load_settings`, or directly in tests."""

    node_id: int = setting(
        "node.id",
        whole_int(0),
        1,
        "The number of this broker in its cluster.",
        section=BROKER,
        aliases=("broker.id",),
    )
    cluster_id: str | None = setting(
        "cluster.id",
        Optionally(Text()),
        None,
        "The id that a new data directory gets; a random one if none is given. "
        "A directory that has one already must have this one.",
        section=BROKER,
    )
    data_dir: Path = setting(  # noqa: RUF009 # makes an attrs field; a Path never changes
        "data.dir",
        Folder(),
        Path("tidemark-data"),
        "The folder that holds everything the broker keeps. It is made if it is missing.",
        section=BROKER,
        aliases=("log.dirs", "log.dir"),
    )
    listeners: tuple[Endpoint, ...] = setting(
        "listeners",
        Endpoints(),
        (Endpoint("PLAINTEXT", Address("127.0.0.1", 9092), is_named=False),),
        "Where clients connect: `host:port`, or `NAME://host:port` with commas between. "
        "An empty host is every interface, port 0 any free port.",
        section=BROKER,
        aliases=("listen",),
    )
    advertised_listeners: tuple[Endpoint, ...] = setting(
        "advertised.listeners",
        Endpoints(),
        (),
        "What clients are told to connect to, for each listener by its name. Without it, the "
        "address listened on; on every interface, the address by which the client came.",
        section=BROKER,
        aliases=("advertise",),
    )
    listener_security_protocol_map: tuple[tuple[str, str], ...] = setting(
        "listener.security.protocol.map",
        Pairs(),
        (),
        "The protocol of each listener that is not named after one: `PLAINTEXT` or "
        "`SASL_PLAINTEXT`.",
        section=BROKER,
    )
    broker_rack: str | None = setting(
        "broker.rack",
        Optionally(Text()),
        None,
        "The rack or zone this broker is in: clients are told, and replicas are spread over racks.",
        section=BROKER,
        aliases=("rack",),
    )
    stop_timeout_ms: int = setting(
        "stop.timeout.ms",
        Whole(0),
        10_000,
        "How long a graceful stop waits for requests in progress.",
        section=BROKER,
        aliases=("controlled.shutdown.timeout.ms",),
    )

    peer_listen: Address = setting(  # noqa: RUF009 # makes an attrs field; frozen
        "peer.listen",
        AddressText(),
        Address("127.0.0.1", 9093),
        "Where other brokers connect. Nothing there asks who they are: keep it to a network of "
        "their own.",
        section=CLUSTER,
    )
    peer_advertise: Address | None = setting(  # noqa: RUF009 # makes an attrs field; frozen
        "peer.advertise",
        Optionally(AddressText()),
        None,
        "What the other brokers are told to connect to; without it, the address listened on.",
        section=CLUSTER,
    )
    join: tuple[Address, ...] = setting(
        "join",
        AddressList(),
        (),
        "Brokers of the cluster to belong to, by their `peer.listen`, with commas between; one "
        "that can be reached is enough. Without it a new data directory begins a cluster of its "
        "own.",
        section=CLUSTER,
    )

    peer_failure_timeout_ms: int = setting(
        "peer.failure.timeout.ms",
        whole_int(FAILURE_TIMEOUT_MS_MIN),
        2000,
        "After this long without a word from another broker it is taken for dead, and others are "
        "elected for what it led; a leader that hears of no majority stops at the same time. A "
        "process that ends is noticed at once, without it. It has to be longer than any pause of a "
        "broker that is well, and the same on all brokers.",
        section=CLUSTER,
    )
    replica_selector: str = setting(
        "replica.selector",
        OneOf(("rack", "leader")),
        "rack",
        "Where a consumer that names its rack reads: `rack` is from the replica or observer in "
        "that rack, if there is one (KIP-392), `leader` is always from the leader.",
        section=CLUSTER,
    )
    replica_read_lag_max_ms: int = setting(
        "replica.read.lag.max.ms",
        whole_int(0),
        5_000,
        "How far a replica or observer may be behind its leader while consumers read from it: the "
        "leader sends nobody to one that is further behind, and that one sends them back.",
        section=CLUSTER,
    )

    leader_move_pause_max_ms: int = setting(
        "leader.move.pause.max.ms",
        whole_int(1, 10_000),
        500,
        "How long writes to a partition are held at most, in one attempt, while its lead is handed "
        "to another broker. It takes some tens of milliseconds if all is well; what takes longer "
        "is given up, and tried again.",
        section=CLUSTER,
    )

    reassignment_bytes_per_second: int = setting(
        "reassignment.bytes.per.second",
        Whole(0),
        50 * 1024 * 1024,
        "How many bytes a second this broker sends at most to replicas that are new on other "
        "brokers, all together, until they hold nearly everything; 0 is no limit. If more is "
        "written to a partition than this, its new replicas never catch up.",
        section=CLUSTER,
    )
    leader_balance_enable: bool = setting(
        "leader.balance.enable",
        YesNo(),
        True,
        "Whether leaders are moved so that all brokers lead about as many partitions and carry "
        "about as much traffic. Brokers that are drained are emptied in any case. It counts on the "
        "broker that leads the cluster's metadata, as all settings here do: set them alike.",
        section=BALANCING,
        aliases=("auto.leader.rebalance.enable",),
    )
    leader_balance_interval_ms: int = setting(
        "leader.balance.interval.ms",
        whole_int(100),
        5000,
        "How often it is looked at who leads what. While there are leaders to move, it is looked "
        "at again as soon as some have moved.",
        section=BALANCING,
    )
    leader_balance_moves_max: int = setting(
        "leader.balance.moves.max",
        whole_int(2),
        10,
        "Leaders that are on the move at a time.",
        section=BALANCING,
    )
    leader_balance_broker_moves_max: int = setting(
        "leader.balance.broker.moves.max",
        whole_int(2),
        5,
        "Leaders that are on the move at a time to or from one broker.",
        section=BALANCING,
    )
    leader_balance_cool_down_ms: int = setting(
        "leader.balance.cool.down.ms",
        Whole(0),
        60_000,
        "How long a partition is let be after its leader has changed, whoever changed it, or a "
        "move has failed.",
        section=BALANCING,
    )
    leader_balance_start_grace_ms: int = setting(
        "leader.balance.start.grace.ms",
        Whole(0),
        30_000,
        "How long a broker that has started is given no leaders and loses none.",
        section=BALANCING,
    )
    leader_balance_tolerance_percent: int = setting(
        "leader.balance.tolerance.percent",
        whole_int(0, 99),
        5,
        "By how much a measured share of the traffic may be wrong: leaders move for their traffic "
        "only where it is better even then.",
        section=BALANCING,
    )
    leader_balance_traffic_weight: int = setting(
        "leader.balance.traffic.weight",
        whole_int(0, 1_000_000),
        1,
        "What evenness of traffic is worth beside evenness in number. With 1 the number comes "
        "first and traffic decides between equals, with some hundreds traffic comes first, with 0 "
        "it does not count.",
        section=BALANCING,
    )
    leader_balance_lag_max_records: int = setting(
        "leader.balance.lag.max.records",
        Whole(0),
        10_000,
        "How many records a replica may be behind its leader when it is chosen to take over. It "
        "catches up before writes are held.",
        section=BALANCING,
    )

    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes",
        whole_int(1024),
        100 * 1024 * 1024,
        "The largest request accepted; a larger one closes the connection.",
        section=CONNECTIONS,
    )
    queued_max_request_bytes: int = setting(
        "queued.max.request.bytes",
        Whole(1024),
        256 * 1024 * 1024,
        "Memory for requests that are being received, all connections together. A connection that "
        "gets none is not read until there is some.",
        section=CONNECTIONS,
    )
    connection_requests_max: int = setting(
        "connection.requests.max",
        Whole(1),
        64,
        "Requests of one connection that may be unanswered before it is not read any further.",
        section=CONNECTIONS,
    )
    connection_response_max_bytes: int = setting(
        "connection.response.max.bytes",
        Whole(1024),
        16 * 1024 * 1024,
        "Responses in memory that one connection may have waiting to be sent before it is not "
        "read any further. Records are sent from their files and do not count.",
        section=CONNECTIONS,
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        Whole(0),
        600_000,
        "A connection that says nothing for this long is closed; 0 never closes one.",
        section=CONNECTIONS,
    )
    max_connections: int = setting(
        "max.connections",
        whole_int(1),
        10_000,
        "Connections open at once; one more is closed at once.",
        section=CONNECTIONS,
    )
    socket_send_buffer_bytes: int = setting(
        "socket.send.buffer.bytes",
        whole_int(-1),
        -1,
        "The send buffer of a connection in the kernel; -1 leaves it to the kernel.",
        section=CONNECTIONS,
    )
    socket_receive_buffer_bytes: int = setting(
        "socket.receive.buffer.bytes",
        whole_int(-1),
        -1,
        "The receive buffer of a connection in the kernel; -1 leaves it to the kernel.",
        section=CONNECTIONS,
    )
    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        whole_int(1024),
        55 * 1024 * 1024,
        "The most that one Fetch returns, whatever it asks for.",
        section=CONNECTIONS,
    )

    max_incremental_fetch_session_cache_slots: int = setting(
        "max.incremental.fetch.session.cache.slots",
        whole_int(0),
        1000,
        "Fetch sessions that are remembered at most: in one, a consumer and the broker tell each "
        "other only what has changed. A consumer that gets none does without; 0 is none at all.",
        section=CONNECTIONS,
    )

    quota_window_num: int = setting(
        "quota.window.num",
        whole_int(2),
        11,
        "With `quota.window.size.seconds`: a client that was still may use up so many windows of "
        "its quota at once, but for one, before it is held back.",
        section=CONNECTIONS,
    )
    quota_window_size_seconds: int = setting(
        "quota.window.size.seconds",
        whole_int(1),
        1,
        "How long such a window is; nobody is held back for longer at a time because of the quota "
        "on the broker's time.",
        section=CONNECTIONS,
    )

    num_partitions: int = setting(
        "num.partitions",
        whole_int(1),
        4,
        "Partitions of a topic that is created without saying how many.",
        section=TOPICS,
    )
    default_replication_factor: int = setting(
        "default.replication.factor",
        whole_int(1, 32767),
        1,
        "Replicas of a topic that is created without saying how many.",
        section=TOPICS,
    )
    auto_create_topics_enable: bool = setting(
        "auto.create.topics.enable",
        YesNo(),
        True,
        "Whether a topic is created when a client first asks for it by name.",
        section=TOPICS,
    )
    delete_topic_enable: bool = setting(
        "delete.topic.enable",
        YesNo(),
        True,
        "Whether topics can be deleted.",
        section=TOPICS,
    )
    partitions_max: int = setting(
        "partitions.max",
        whole_int(1),
        20_000,
        "Partitions that this broker holds at most: each takes memory and file descriptors.",
        section=TOPICS,
    )
    log_retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms",
        Whole(1),
        300_000,
        "How often all logs are looked through for segments past their retention.",
        section=TOPICS,
    )
    log_cleaner_enable: bool = setting(
        "log.cleaner.enable",
        YesNo(),
        True,
        "Whether compacted topics are compacted. Without it they grow, `__consumer_offsets` too.",
        section=TOPICS,
    )
    log_cleaner_backoff_ms: int = setting(
        "log.cleaner.backoff.ms",
        Whole(1),
        15_000,
        "How often compacted topics are looked through for logs that are dirty enough.",
        section=TOPICS,
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        "log.cleaner.dedupe.buffer.size",
        Whole(1 << 20),
        128 << 20,
        "The memory for the keys of one compaction, which is at work on one log at a time: a key "
        "takes 256 bytes. What has more keys than fit is compacted in several runs.",
        section=TOPICS,
    )
    log_cleaner_io_max_bytes_per_second: int = setting(
        "log.cleaner.io.max.bytes.per.second",
        Whole(0),
        0,
        "What compaction reads and writes at most, together, in a second; 0 is no limit.",
        section=TOPICS,
    )
    topic_defaults: Mapping[str, str] = MappingProxyType({})
    """Topic configs by Kafka's topic-level name, for topics that do not set their own."""

    offsets_topic_num_partitions: int = setting(
        "offsets.topic.num.partitions",
        whole_int(1),
        8,
        "Partitions of `__consumer_offsets`. It cannot be changed once the topic is there.",
        section=GROUPS,
    )
    offsets_topic_replication_factor: int = setting(
        "offsets.topic.replication.factor",
        whole_int(1, 32767),
        3,
        "Replicas of `__consumer_offsets`, or one on each broker while there are fewer: the topic "
        "is made when a client first looks for a group, and gets more once more brokers are there.",
        section=GROUPS,
    )
    offsets_topic_segment_bytes: int = setting(
        "offsets.topic.segment.bytes",
        whole_int(1024),
        100 * 1024 * 1024,
        "The segment size of `__consumer_offsets`.",
        section=GROUPS,
    )
    offsets_retention_minutes: int = setting(
        "offsets.retention.minutes",
        whole_int(1),
        7 * 24 * 60,
        "How long the committed offsets of a group without members are kept.",
        section=GROUPS,
    )
    offsets_retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms",
        Whole(1),
        600_000,
        "How often committed offsets are looked through for expired ones.",
        section=GROUPS,
    )
    offset_metadata_max_bytes: int = setting(
        "offset.metadata.max.bytes",
        whole_int(0),
        4096,
        "The longest text that may be stored with a committed offset.",
        section=GROUPS,
    )
    group_initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms",
        whole_int(0),
        3000,
        "How long an empty group waits for more members before its first assignment.",
        section=GROUPS,
    )
    group_min_session_timeout_ms: int = setting(
        "group.min.session.timeout.ms",
        whole_int(1),
        6000,
        "The shortest session timeout a member may ask for.",
        section=GROUPS,
    )
    group_max_session_timeout_ms: int = setting(
        "group.max.session.timeout.ms",
        whole_int(1),
        1_800_000,
        "The longest session timeout a member may ask for.",
        section=GROUPS,
    )
    group_consumer_session_timeout_ms: int = setting(
        "group.consumer.session.timeout.ms",
        whole_int(1),
        45_000,
        "How long a member of the consumer protocol may be silent before it is taken out.",
        section=GROUPS,
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        "group.consumer.heartbeat.interval.ms",
        whole_int(1),
        5_000,
        "How often members of the consumer protocol are told to come. Who has to give up "
        "partitions, or waits for some, is told to come twice a second.",
        section=GROUPS,
    )
    group_consumer_max_size: int = setting(
        "group.consumer.max.size",
        whole_int(1),
        INT_MAX,
        "Members that one group of the consumer protocol may have.",
        section=GROUPS,
    )
    group_consumer_assignors: tuple[str, ...] = setting(
        "group.consumer.assignors",
        ListOf(tuple(ASSIGNORS), empty_allowed=False),
        ("uniform", "range"),
        "The assignors that members of the consumer protocol may ask for. The first is that of "
        "groups whose members ask for none.",
        section=GROUPS,
    )
    group_max_size: int = setting(
        "group.max.size",
        whole_int(1),
        INT_MAX,
        "Members that one group may have.",
        section=GROUPS,
    )

    producer_id_expiration_ms: int = setting(
        "producer.id.expiration.ms",
        whole_int(1),
        86_400_000,
        "How long a partition remembers an idempotent producer that has gone quiet.",
        section=PRODUCERS,
    )
    transaction_max_timeout_ms: int = setting(
        "transaction.max.timeout.ms",
        whole_int(1),
        900_000,
        "The longest transaction timeout a producer may ask for.",
        section=PRODUCERS,
    )
    transaction_state_log_num_partitions: int = setting(
        "transaction.state.log.num.partitions",
        whole_int(1),
        8,
        "Partitions of `__transaction_state`. It cannot be changed once the topic is there.",
        section=PRODUCERS,
    )
    transaction_state_log_replication_factor: int = setting(
        "transaction.state.log.replication.factor",
        whole_int(1, 32767),
        3,
        "Replicas of `__transaction_state`, or one on each broker while there are fewer: the topic "
        "is made when a transactional producer first comes, and gets more once more brokers are "
        "there.",
        section=PRODUCERS,
    )
    transaction_state_log_segment_bytes: int = setting(
        "transaction.state.log.segment.bytes",
        whole_int(1024),
        100 * 1024 * 1024,
        "The segment size of `__transaction_state`.",
        section=PRODUCERS,
    )
    transactional_id_expiration_ms: int = setting(
        "transactional.id.expiration.ms",
        whole_int(1),
        7 * 24 * 3_600_000,
        "How long a transactional id is remembered that nobody uses.",
        section=PRODUCERS,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        Whole(1),
        3_600_000,
        "How often transactional ids are looked through for expired ones.",
        section=PRODUCERS,
    )

    http_listen: Address | None = setting(  # noqa: RUF009 # makes an attrs field; frozen
        "http.listen",
        Optionally(AddressText()),
        Address("127.0.0.1", 9644),
        "Where `/metrics`, `/healthz` and `/readyz` are served; `none` turns them off.",
        section=OBSERVING,
        aliases=("http",),
    )
    metrics_topics_max: int = setting(
        "metrics.topics.max",
        whole_int(0),
        500,
        "Topics that have labels of their own in the metrics; the rest are counted together "
        "under the topic `(other)`.",
        section=OBSERVING,
    )
    metrics_partitions_max: int = setting(
        "metrics.partitions.max",
        whole_int(0),
        1000,
        "Partitions, and partitions of groups, that have series of their own in the metrics.",
        section=OBSERVING,
    )
    metrics_groups_max: int = setting(
        "metrics.groups.max",
        whole_int(0),
        500,
        "Consumer groups that have series of their own in the metrics.",
        section=OBSERVING,
    )
    logging_level: str = setting(
        "logging.level",
        OneOf(("debug", "info", "warning", "error")),
        "info",
        "The least important lines that are logged.",
        section=OBSERVING,
    )
    logging_format: str = setting(
        "logging.format",
        OneOf(("auto", "console", "json")),
        "auto",
        "How log lines on standard error look; `auto` is for people on a terminal, JSON elsewhere.",
        section=OBSERVING,
    )

    sasl_enabled_mechanisms: tuple[str, ...] = setting(
        "sasl.enabled.mechanisms",
        ListOf(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), empty_allowed=False),
        ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        "The ways in which a client may prove who it is.",
        section=SECURITY,
    )
    users: tuple[User, ...] = setting(
        "users",
        Users(),
        (),
        "Who may connect: `name:password` with commas between, or `[[users]]` tables with `name` "
        "and `password` in TOML. With any user, a listener that does not name its protocol "
        "asks for SASL.",
        section=SECURITY,
        is_secret=True,
    )

    def client_listeners(self) -> tuple[Listener, ...]:
        """Each listener with its advertised address and protocol. Needs settings that agree."""
        advertised = {endpoint.name: endpoint.address for endpoint in self.advertised_listeners}
        return tuple(
            Listener(
                name=endpoint.name,
                address=endpoint.address,
                advertised=advertised.get(endpoint.name),
                protocol=self._protocol(endpoint),
            )
            for endpoint in self.listeners
        )

    def _protocol(self, endpoint: Endpoint) -> SecurityProtocol:
        if self.users and not endpoint.is_named:
            return SecurityProtocol.SASL_PLAINTEXT
        protocols = dict(self.listener_security_protocol_map)
        return SecurityProtocol(protocols.get(endpoint.name, endpoint.name))


SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(settings_of(BrokerSettings))
"""Every setting by its name, in the order of the reference."""
