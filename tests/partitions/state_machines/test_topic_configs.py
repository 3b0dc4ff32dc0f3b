"""The topic configs: Kafka's names, what each takes, and what APPEND and SUBTRACT make of lists."""

import pytest

from tidemark.partitions.state_machines.config_changes import ConfigChange, altered
from tidemark.partitions.state_machines.config_table import ConfigType
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS, TopicConfig
from tidemark.protocol.configs import AlterOp
from tidemark.protocol.errors import ErrorCode, RequestError

KAFKA_4_NAMES = """
cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level
delete.retention.ms file.delete.delay.ms flush.messages flush.ms
follower.replication.throttled.replicas index.interval.bytes leader.replication.throttled.replicas
local.retention.bytes local.retention.ms max.compaction.lag.ms max.message.bytes
message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.type
min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate
remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable retention.bytes
retention.ms segment.bytes segment.index.bytes segment.jitter.ms segment.ms
unclean.leader.election.enable
"""


def refusal(overrides: dict[str, str]) -> RequestError:
    with pytest.raises(RequestError) as caught:
        TopicConfig.from_overrides(overrides)
    return caught.value


def test_trap_m10_every_config_of_kafka_4_is_known_with_a_default_it_takes() -> None:
    assert set(KAFKA_4_NAMES.split()) | {"flush", "observers"} == set(TOPIC_SETTINGS)
    defaults = {name: row.default for name, row in TOPIC_SETTINGS.items()}
    assert TopicConfig.from_overrides(defaults) == TopicConfig()


def test_every_config_says_in_a_sentence_what_it_does() -> None:
    assert all(row.documentation.endswith(".") for row in TOPIC_SETTINGS.values())


def test_overrides_are_read_as_values() -> None:
    config = TopicConfig.from_overrides(
        {"retention.ms": "-1", "cleanup.policy": "compact, delete", "flush": "os"}
    )
    assert config.retention_ms == -1
    assert config.is_compacted
    assert config.deletes_old_segments
    assert not config.syncs_before_ack
    assert config.segment_bytes == 2**30


def test_a_brokers_default_comes_before_the_tables_and_after_the_topics() -> None:
    defaults = {"retention.ms": "5", "segment.ms": "6"}
    config = TopicConfig.from_overrides({"segment.ms": "7"}, defaults)
    assert (config.retention_ms, config.segment_ms) == (5, 7)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("retention.ms", "soon", "a whole number, -1 or more"),
        ("retention.ms", "-2", "a whole number, -1 or more"),
        ("max.message.bytes", str(2**31), "a whole number from 0 to 2147483647"),
        ("compression.lz4.level", "18", "a whole number from 1 to 17"),
        ("cleanup.policy", "burn", "a list of delete and compact"),
        ("message.timestamp.type", "Now", "CreateTime or LogAppendTime"),
        ("min.cleanable.dirty.ratio", "1.5", "a number from 0 to 1"),
        ("min.cleanable.dirty.ratio", "nan", "a number from 0 to 1"),
        ("preallocate", "yes", "true or false"),
        ("remote.storage.enable", "true", "false"),
        ("flush", "never", "commit or os"),
    ],
)
def test_a_value_that_a_config_does_not_take_is_refused_with_what_it_takes(
    name: str, value: str, wanted: str
) -> None:
    error = refusal({name: value})
    assert error.code is ErrorCode.INVALID_CONFIG
    assert name in str(error)
    assert wanted in str(error)


def test_trap_m9_an_unknown_config_is_invalid_and_a_near_name_is_offered() -> None:
    assert refusal({"colour": "blue"}).code is ErrorCode.INVALID_CONFIG
    for name in ("retention_ms", "retentionMs", "retension.ms"):
        assert "did you mean retention.ms?" in str(refusal({name: "1"}))
    for name in ("tidemark.flush", "flsh"):
        assert "did you mean flush?" in str(refusal({name: "os"}))


def change(name: str, op: AlterOp, value: str | None = None) -> ConfigChange:
    return ConfigChange(name=name, op=op, value=value)


def test_trap_m11_append_adds_to_a_list_and_starts_from_the_default() -> None:
    after = altered({}, [change("cleanup.policy", AlterOp.APPEND, "compact")])
    assert after == {"cleanup.policy": "delete,compact"}
    assert altered(after, [change("cleanup.policy", AlterOp.APPEND, "compact")]) == after


def test_trap_m11_subtract_takes_from_a_list() -> None:
    before = {"cleanup.policy": "delete,compact"}
    after = altered(before, [change("cleanup.policy", AlterOp.SUBTRACT, "delete")])
    assert after == {"cleanup.policy": "compact"}


def test_trap_m11_only_a_list_can_be_appended_to() -> None:
    with pytest.raises(RequestError, match=r"not a list.*set it") as caught:
        altered({}, [change("retention.ms", AlterOp.APPEND, "5")])
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_delete_goes_back_to_the_default_and_set_replaces() -> None:
    before = {"retention.ms": "5", "segment.ms": "6"}
    changes = [change("retention.ms", AlterOp.DELETE), change("segment.ms", AlterOp.SET, "7")]
    assert altered(before, changes) == {"segment.ms": "7"}
    assert before == {"retention.ms": "5", "segment.ms": "6"}


def test_one_bad_change_refuses_them_all() -> None:
    with pytest.raises(RequestError, match=r"retention\.ms"):
        altered({}, [change("segment.ms", AlterOp.SET, "7"), change("retention.ms", AlterOp.SET)])


def test_a_config_changed_twice_in_one_request_is_refused() -> None:
    twice = [change("retention.ms", AlterOp.SET, text) for text in ("1", "2")]
    with pytest.raises(RequestError) as caught:
        altered({}, twice)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_the_types_are_those_that_clients_see() -> None:
    types = {name: TOPIC_SETTINGS[name].type for name in ("retention.ms", "max.message.bytes")}
    assert types == {"retention.ms": ConfigType.LONG, "max.message.bytes": ConfigType.INT}
    assert [name for name, row in TOPIC_SETTINGS.items() if row.is_list] == [
        "cleanup.policy",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
    ]


def test_a_list_is_added_to_until_it_is_as_long_as_a_string_can_be() -> None:
    name = "leader.replication.throttled.replicas"
    half = ",".join(str(number) for number in range(10_000, 13_000))
    other = ",".join(str(number) for number in range(20_000, 23_000))
    configs = {name: half}
    with pytest.raises(RequestError, match=f"{name} would be longer than 32767 bytes") as caught:
        altered(configs, [ConfigChange(name=name, op=AlterOp.APPEND, value=other)])
    assert caught.value.code is ErrorCode.INVALID_CONFIG
