"""What is counted, what a scrape shows, and that its labels are bounded."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.broker.metrics.samples import Broker, busy_metrics, group, partition
from tidemark.broker.metrics import OTHER, LedFigures, Limits, Metrics, Scrape
from tidemark.broker.metrics.counts import LATENCY_BOUNDS_SECONDS, Latency
from tidemark.protocol.types import Offset, TopicPartition

LIMITS = Limits(partitions_max=100, groups_max=10)


def scrape(metrics: Metrics, broker: Broker, limits: Limits = LIMITS) -> dict[str, float]:
    """Every sample of a scrape as `name{label="value"}`, labels in order, with its value."""
    shown = Scrape(metrics, limits)
    shown.show(broker)
    page = shown.page("text/plain").body.decode()
    samples = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            samples[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return samples


def test_requests_are_counted_by_api_and_unknown_keys_share_a_label() -> None:
    metrics = Metrics(topics_max=10)
    metrics.api(0).requests.inc()
    metrics.api(7777).requests.inc()
    metrics.api(-3).requests.inc()
    samples = scrape(metrics, Broker())
    assert samples['tidemark_requests_total{api="Produce"}'] == 1
    assert samples[f'tidemark_requests_total{{api="{OTHER}"}}'] == 2


def test_an_api_has_the_same_counts_whoever_asks() -> None:
    metrics = Metrics(topics_max=10)
    assert metrics.api(1) is metrics.api(1)
    assert metrics.topic("a") is metrics.topic("a")


def test_an_api_that_nobody_called_has_no_series() -> None:
    metrics = Metrics(topics_max=10)
    metrics.api(0)
    assert not [name for name in scrape(metrics, Broker()) if "Produce" in name]


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0, "0.0001"), (0.0001, "0.0001"), (0.00011, "0.00025"), (99, "+Inf")]
)
def test_a_latency_falls_into_the_bucket_whose_end_is_not_below_it(
    seconds: float, bucket: str
) -> None:
    latency = Latency()
    latency.observe(seconds)
    first_full = next(bound for bound, count in latency.buckets() if count)
    assert first_full == bucket
    assert latency.buckets()[-1] == ("+Inf", 1)


def test_a_histogram_has_all_buckets_its_sum_and_its_count() -> None:
    metrics = Metrics(topics_max=10)
    metrics.flush.observe(0.003)
    metrics.flush.observe(0.004)
    samples = scrape(metrics, Broker())
    name = "tidemark_flush_duration_seconds"
    assert samples[f"{name}_count"] == 2
    assert samples[f"{name}_sum"] == pytest.approx(0.007)
    assert len([each for each in samples if each.startswith(f"{name}_bucket")]) == (
        len(LATENCY_BOUNDS_SECONDS) + 1
    )


def test_topics_over_the_limit_are_counted_together_until_there_is_room() -> None:
    metrics = Metrics(topics_max=2)
    for number, topic in enumerate(["a", "b", "c", "d"], start=1):
        metrics.topic(topic).bytes_in.inc(number)
    assert metrics.topic("c") is metrics.topic("d") is metrics.topic(OTHER)
    samples = scrape(metrics, Broker([partition("a"), partition("c"), partition("d")]))
    assert samples['tidemark_topic_in_bytes_total{topic="b"}'] == 2
    assert samples[f'tidemark_topic_in_bytes_total{{topic="{OTHER}"}}'] == 3 + 4
    assert samples[f'tidemark_topic_partitions{{topic="{OTHER}"}}'] == 2
    assert not [name for name in samples if 'topic="c"' in name or 'topic="d"' in name]
    metrics.forget_topic("a")
    assert metrics.topic("e") is not metrics.topic(OTHER)


def test_a_topic_whose_partitions_do_not_fit_is_shown_as_a_whole_only() -> None:
    metrics = Metrics(topics_max=10)
    wide = [partition("wide", number) for number in range(5)]
    for topic in ("wide", "narrow"):
        metrics.topic(topic)
    limits = Limits(partitions_max=3, groups_max=10)
    samples = scrape(metrics, Broker([*wide, partition("narrow")]), limits)
    assert samples['tidemark_topic_partitions{topic="wide"}'] == 5
    assert 'tidemark_partition_high_watermark{partition="0",topic="narrow"}' in samples
    assert 'tidemark_partition_high_watermark{partition="0",topic="wide"}' not in samples
    assert samples["tidemark_partitions"] == 6


def test_topics_and_partitions_are_those_of_the_cluster_wherever_their_replicas_are() -> None:
    metrics = Metrics(topics_max=10)
    metrics.topic("a")
    samples = scrape(metrics, Broker([partition("a", 1)], elsewhere={"a": 3, "b": 2}))
    assert samples["tidemark_topics"] == 2
    assert samples["tidemark_partitions"] == 5
    assert samples['tidemark_topic_partitions{topic="a"}'] == 3
    assert 'tidemark_topic_partitions{topic="b"}' not in samples


def test_partitions_that_are_not_compacted_have_the_labels_of_all_others() -> None:
    metrics = Metrics(topics_max=10)
    metrics.compaction.failed("to-do-3", "it is corrupt")
    metrics.compaction.unreadable_batches["to-do-4"] = 2
    samples = scrape(metrics, Broker())
    assert samples['tidemark_compaction_set_aside{partition="3",topic="to-do"}'] == 1
    assert samples['tidemark_compaction_unreadable_batches{partition="4",topic="to-do"}'] == 2


def test_lag_is_what_lies_between_the_commit_and_the_high_watermark() -> None:
    metrics = Metrics(topics_max=10)
    metrics.topic("a")
    partitions = [partition("a", 0, high_watermark=10), partition("a", 1, high_watermark=5)]
    groups = [group("readers", {("a", 0): 4, ("a", 1): 9, ("deleted", 0): 3}, members=2)]
    samples = scrape(metrics, Broker(partitions, groups))
    assert samples['tidemark_group_lag{group="readers",partition="0",topic="a"}'] == 6
    assert samples['tidemark_group_lag{group="readers",partition="1",topic="a"}'] == 0
    assert samples['tidemark_group_lag_sum{group="readers"}'] == 6
    assert samples['tidemark_group_members{group="readers"}'] == 2
    assert not [name for name in samples if "deleted" in name]


def test_lag_counts_partitions_that_are_on_other_brokers_only() -> None:
    metrics = Metrics(topics_max=10)
    metrics.topic("a")
    groups = [group("readers", {("a", 0): 4, ("a", 1): 9, ("deleted", 0): 3})]
    ends = {TopicPartition("a", 1): Offset(20)}
    samples = scrape(metrics, Broker([partition("a", high_watermark=10)], groups, ends=ends))
    assert samples['tidemark_group_lag{group="readers",partition="0",topic="a"}'] == 6
    assert samples['tidemark_group_lag{group="readers",partition="1",topic="a"}'] == 11
    assert samples['tidemark_group_lag_sum{group="readers"}'] == 17
    assert not [name for name in samples if "deleted" in name]


def test_groups_over_the_limit_are_left_out_and_counted() -> None:
    groups = [group(f"g{number}", {("a", 0): 1}) for number in range(5)]
    metrics = Metrics(topics_max=10)
    samples = scrape(
        metrics, Broker([partition("a")], groups), Limits(partitions_max=2, groups_max=3)
    )
    assert samples["tidemark_groups"] == 5
    assert len([name for name in samples if name.startswith("tidemark_group_members")]) == 3
    assert len([name for name in samples if name.startswith("tidemark_group_lag{")]) == 2


def test_the_numbers_are_there_under_the_names_of_kafka_exporter() -> None:
    metrics = Metrics(topics_max=10)
    metrics.topic("a")
    partitions = [partition("a", 0, log_start=2, high_watermark=10), partition("a", 1)]
    led = LedFigures(replicas=3, in_sync=2, is_led_by_preferred=False)
    groups = [group("readers", {("a", 0): 4})]
    broker = Broker(partitions, groups, all_led={TopicPartition("a", 0): led})
    samples = scrape(metrics, broker)
    one = 'partition="0",topic="a"'
    assert samples["kafka_brokers"] == 3
    assert samples['kafka_broker_info{address="127.0.0.1:9092",id="1"}'] == 1
    assert samples['kafka_topic_partitions{topic="a"}'] == 1
    for name, value in {
        "current_offset": 10,
        "oldest_offset": 2,
        "leader": 1,
        "leader_is_preferred": 0,
        "replicas": 3,
        "in_sync_replica": 2,
        "under_replicated_partition": 1,
    }.items():
        assert samples[f"kafka_topic_partition_{name}{{{one}}}"] == value
    assert not [name for name in samples if name.startswith("kafka_") and 'partition="1"' in name]
    assert samples[f'kafka_consumergroup_current_offset{{consumergroup="readers",{one}}}'] == 4
    assert samples[f'kafka_consumergroup_lag{{consumergroup="readers",{one}}}'] == 6
    assert samples['kafka_consumergroup_lag_sum{consumergroup="readers",topic="a"}'] == 6
    assert samples['kafka_consumergroup_members{consumergroup="readers"}'] == 0


def test_connections_are_those_opened_less_those_closed() -> None:
    metrics = busy_metrics()
    opened = metrics.connections_opened.value
    closed = sum(count.value for count in metrics.connections_closed.values())
    assert scrape(metrics, Broker())["tidemark_connections"] == opened - closed


def test_names_follow_prometheus_conventions() -> None:
    metrics = busy_metrics()
    shown = Scrape(metrics, LIMITS)
    shown.show(Broker([partition("a")]))
    for family in shown.registry().collect():
        if not family.name.startswith("tidemark_"):
            continue
        assert family.documentation.endswith("."), family.name
        assert not family.name.endswith(("_ms", "_total", "_count")), family.name


def test_before_recovery_is_done_there_are_counts_and_no_figures() -> None:
    shown = Scrape(busy_metrics(), LIMITS)
    assert b"tidemark_connections " in shown.page("*/*").body
    assert b"tidemark_topics " not in shown.page("*/*").body
    shown.show(Broker())
    assert b"tidemark_topics " in shown.page("*/*").body


def test_the_format_is_the_one_that_is_asked_for() -> None:
    shown = Scrape(busy_metrics(), LIMITS)
    body, content_type = shown.page("application/openmetrics-text")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
    assert shown.page("*/*").content_type.startswith("text/plain")
