"""Kafka's names that are not settings of ours: defaults of topic configs, and what has no meaning
here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS

TOPIC_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {row.synonym: row.name for row in TOPIC_SETTINGS.values() if row.synonym is not None}
)
"""The broker's name for the default of a topic config, and that topic config's own name."""

SCALED_TOPIC_DEFAULTS: Final[Mapping[str, tuple[str, int]]] = MappingProxyType(
    {
        "log.retention.minutes": ("log.retention.ms", 60_000),
        "log.retention.hours": ("log.retention.ms", 3_600_000),
        "log.roll.hours": ("log.roll.ms", 3_600_000),
        "log.roll.jitter.hours": ("log.roll.jitter.ms", 3_600_000),
    }
)
"""The same in other units: the name in milliseconds, and how many of them make one."""

_WITHOUT_MEANING: Final = (
    "alter.config.policy.class.name",
    "background.threads",
    "broker.heartbeat.",
    "client.quota.",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "connection.failed.authentication.delay.ms",
    "connections.max.reauth.ms",
    "control.plane.listener.name",
    "controlled.shutdown.",
    "controller.",
    "create.topic.policy.class.name",
    "delegation.token.",
    "early.start.listeners",
    "fetch.purgatory.",
    "follower.replication.",
    "group.consumer.max.heartbeat.interval.ms",
    "group.consumer.max.session.timeout.ms",
    "group.consumer.migration.policy",
    "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.min.session.timeout.ms",
    "group.consumer.regex.refresh.interval.ms",
    "group.coordinator.",
    "group.share.",
    "initial.broker.registration.timeout.ms",
    "inter.broker.",
    "kafka.metrics.",
    "leader.imbalance.",
    "leader.replication.",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.threads",
    "log.dir.failure.timeout.ms",
    "log.flush.offset.checkpoint.interval.ms",
    "log.flush.scheduler.interval.ms",
    "log.flush.start.offset.checkpoint.interval.ms",
    "log.message.downconversion.enable",
    "log.message.format.version",
    "max.connection.creation.rate",
    "max.connections.per.ip",
    "metadata.",
    "metric.",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.",
    "offsets.commit.",
    "offsets.load.buffer.size",
    "offsets.topic.compression.codec",
    "password.encoder.",
    "process.roles",
    "producer.purgatory.",
    "queued.max.requests",
    "quota.",
    "remote.",
    "replica.",
    "replication.quota.",
    "reserved.broker.max.id",
    "request.timeout.ms",
    "sasl.kerberos.",
    "sasl.mechanism.",
    "security.inter.broker.protocol",
    "security.providers",
    "server.max.startup.time.ms",
    "share.coordinator.",
    "socket.connection.setup.",
    "socket.listen.backlog.size",
    "ssl.allow.",
    "ssl.endpoint.identification.algorithm",
    "ssl.keymanager.algorithm",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "ssl.truststore.type",
    "telemetry.",
    "transaction.abort.timed.out.",
    "transaction.partition.verification.enable",
    "transaction.state.log.load.buffer.size",
    "transaction.state.log.min.isr",
    "transaction.two.phase.commit.enable",
    "unstable.",
    "zookeeper.",
    "confluent.",
)


def is_without_meaning(name: str) -> bool:
    """Whether Kafka knows the name, or one of its family, and there is nothing to set here."""
    return any(
        name.startswith(known) if known.endswith(".") else name == known
        for known in _WITHOUT_MEANING
    )
