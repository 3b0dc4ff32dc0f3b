import pytest

from tidemark.client.offsets import Isolation
from tidemark.client.spark.options import SourceOptions, read_options
from tidemark.client.spark.places import AtTimes
from tidemark.client.spark.selections import Assign, Subscribe, SubscribePattern
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.types import TopicPartition

BROKER = {"kafka.bootstrap.servers": "h:1"}
ENOUGH = {**BROKER, "subscribe": "t"}


def read(**more: str) -> SourceOptions:
    return read_options({**ENOUGH, **more}, streaming=False)


def test_the_defaults_are_spark_s_own() -> None:
    batch = read_options(ENOUGH, streaming=False)
    assert (batch.starting, batch.ending) == ("earliest", "latest")
    assert read_options(ENOUGH, streaming=True).starting == "latest"
    assert batch.fail_on_data_loss
    assert not batch.include_headers
    assert batch.isolation is Isolation.READ_UNCOMMITTED


def test_names_are_read_in_any_case() -> None:
    assert read(INCLUDEHEADERS="True", minpartitions="7").min_partitions == 7
    assert read(INCLUDEHEADERS="True").include_headers


@pytest.mark.parametrize(
    ("option", "value", "selection"),
    [
        ("subscribe", "b, a,b", Subscribe(("a", "b"))),
        ("subscribePattern", "a.*", SubscribePattern("a.*")),
        (
            "assign",
            '{"b": [1, 0], "a": [2]}',
            Assign((TopicPartition("a", 2), TopicPartition("b", 0), TopicPartition("b", 1))),
        ),
    ],
)
def test_topics_are_chosen_in_one_of_three_ways(option: str, value: str, selection: object) -> None:
    assert read_options({**BROKER, option: value}).selection == selection


def test_places_are_words_or_json() -> None:
    options = read(startingOffsets='{"t": {"0": 5, "1": -2}}', endingOffsets=" LATEST ")
    assert options.starting == {TopicPartition("t", 0): 5, TopicPartition("t", 1): -2}
    assert options.ending == "latest"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "t"}, "host:port"),
        ({**ENOUGH, "bootstrap": "other:1"}, "differ"),
        (BROKER, r"exactly one of .* \(none is set"),
        ({**ENOUGH, "assign": '{"t": [0]}'}, "assign and subscribe are set"),
        ({**BROKER, "subscribe": " , "}, "names no topic"),
        ({**BROKER, "subscribePattern": "("}, "subscribePattern"),
        ({**BROKER, "assign": "t"}, "JSON like"),
        ({**BROKER, "assign": '{"t": 0}'}, "JSON like"),
        ({**BROKER, "assign": '{"t": [true]}'}, "JSON like"),
        ({**BROKER, "assign": "{}"}, "names no partition"),
        ({**ENOUGH, "startingOffsets": "first"}, "JSON like"),
        ({**ENOUGH, "startingOffsets": "[1]"}, "JSON like"),
        ({**ENOUGH, "startingOffsets": '{"t": 5}'}, "JSON like"),
        ({**ENOUGH, "startingOffsets": '{"t": {"x": 5}}'}, "JSON like"),
        ({**ENOUGH, "startingOffsets": '{"t": {"0": -3}}'}, "JSON like"),
        ({**ENOUGH, "failOnDataLoss": "maybe"}, "true or false"),
        ({**ENOUGH, "minPartitions": "0"}, "above 0"),
        ({**ENOUGH, "minPartitions": "many"}, "above 0"),
        ({**ENOUGH, "kafka.isolation.level": "serializable"}, "read_committed"),
        ({**ENOUGH, "startingOffset": "latest"}, "did you mean startingOffsets"),
        ({**ENOUGH, "startingTimestamp": "noon"}, "startingTimestamp is a time in milliseconds"),
        ({**ENOUGH, "startingOffsetsByTimestamp": '{"t": {"0": -1}}'}, "JSON like"),
        ({**ENOUGH, "startingOffsetsByTimestampStrategy": "none"}, "error or latest"),
        ({**ENOUGH, "maxTriggerDelay": "soon"}, "500ms, 10s or 15m"),
        ({**ENOUGH, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "is above"),
        ({**ENOUGH, "maxRecordsPerPartition": "-1"}, "above 0"),
        ({**ENOUGH, "kafka.security.protocol": "SASL_SSL"}, "kafka.sasl.mechanism is missing"),
        ({**ENOUGH, "kafka.request.timeout.ms": "soon"}, "kafka.request.timeout.ms is a whole"),
        ({**ENOUGH, "kafka.auto.offset.reset": "latest"}, "not supported"),
        ({**ENOUGH, "kafka.value.deserializer": "x"}, "not supported"),
        ({**ENOUGH, "kafka.sasl.jaas.config": "x"}, "has no effect with kafka.security.protocol"),
        ({**ENOUGH, "kafka.sasl.login.class": "x"}, "not supported"),
        ({**ENOUGH, "kafka.client.id": "i" * 2**15}, "kafka.*: client_id has at most 32767"),
    ],
    ids=str,
)
def test_what_cannot_be_honoured_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_options(options)


@pytest.mark.parametrize(
    ("option", "value", "streaming"),
    [
        ("startingOffsets", "latest", False),
        ("startingOffsets", '{"t": {"0": -1}}', False),
        ("endingOffsets", "earliest", False),
        ("endingOffsets", '{"t": {"0": -2}}', False),
        ("endingOffsets", "latest", True),
        ("endingTimestamp", "5", True),
        ("endingOffsetsByTimestamp", '{"t": {"0": 5}}', True),
    ],
)
def test_places_without_meaning_are_refused(option: str, value: str, streaming: bool) -> None:
    with pytest.raises(ConfigError, match=option):
        read_options({**ENOUGH, option: value}, streaming=streaming)


def test_a_time_counts_more_than_times_and_those_more_than_offsets() -> None:
    offsets = {"startingOffsets": '{"t": {"0": 5}}'}
    times = {**offsets, "startingOffsetsByTimestamp": '{"t": {"0": 1700}}'}
    assert read(**times).starting == AtTimes({TopicPartition("t", 0): 1700}, False)
    assert read(**times, startingTimestamp="1800").starting == AtTimes(1800, False)
    later = read(startingTimestamp="1800", startingOffsetsByTimestampStrategy="latest")
    assert later.starting == AtTimes(1800, True)
    assert read(endingTimestamp="1900").ending == AtTimes(1900, True)


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("10s", 10), ("15m", 900), ("1 h", 3600), ("1500", 1.5)]
)
def test_a_delay_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert read(maxTriggerDelay=text).max_trigger_delay_seconds == seconds
    assert read().max_trigger_delay_seconds == 900


def test_settings_of_java_s_client_are_passed_through() -> None:
    client = read(
        **{
            "kafka.client.id": "me",
            "kafka.request.timeout.ms": "5000",
            "kafka.default.api.timeout.ms": "7000",
            "kafka.socket.connection.setup.timeout.ms": "3000",
            "kafka.retry.backoff.ms": "2000",
            "kafka.security.protocol": "plaintext",
        }
    ).client
    assert (client.client_id, client.request_timeout_seconds) == ("me", 5)
    assert (client.retry_timeout_seconds, client.connect_timeout_seconds) == (7, 3)
    assert (client.backoff.initial_seconds, client.backoff.max_seconds) == (2, 2)
    assert read(**{"kafka.max.partition.fetch.bytes": "777"}).batch_bytes == 777


def test_what_spark_s_source_takes_and_has_no_meaning_here_is_let_pass() -> None:
    read(groupIdPrefix="x", **{"kafka.group.id": "g", "kafka.max.poll.records": "5"})


def test_a_rack_sends_the_tasks_to_what_is_near_unless_the_level_says_otherwise() -> None:
    near = {**ENOUGH, "kafka.client.rack": "b"}

    def chosen(given: dict[str, str]) -> tuple[str, str | None]:
        options = read_options(given)
        return options.level.value, options.client.rack

    assert chosen(near) == ("replica", "b")
    assert chosen({**near, "readLevel": "two-step"}) == ("two-step", "b")
    assert chosen({**near, "readLevel": "strict"}) == ("strict", None)
    assert chosen(ENOUGH) == ("committed", None)
    assert chosen({**ENOUGH, "readLevel": "replica"}) == ("replica", "*")
    with pytest.raises(ConfigError, match="readLevel is committed, strict, two-step, replica"):
        read(readLevel="fresh")
