"""The metrics' reference page, made from a scrape.

`python -m tidemark.broker.metrics.reference > docs/metrics.md`; a test holds the page to this.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from prometheus_client.core import Metric

from tidemark.broker.metrics.balance_counts import BrokerFigures
from tidemark.broker.metrics.collect_balance import BalanceCollector
from tidemark.broker.metrics.collect_compaction import CompactionCollector
from tidemark.broker.metrics.collect_counts import CountsCollector
from tidemark.broker.metrics.collect_figures import FiguresCollector
from tidemark.broker.metrics.collect_reassignments import ReassignmentsCollector
from tidemark.broker.metrics.collect_transactions import TransactionsCollector
from tidemark.broker.metrics.figures import (
    GroupFigures,
    LedFigures,
    Limits,
    PartitionFigures,
    TransactionFigures,
)
from tidemark.broker.metrics.metrics import OTHER, Metrics
from tidemark.protocol.types import Epoch, NodeId, Offset, TopicPartition
from tidemark.protocol.values import dataclass

_OPENING = f"""\
# Metrics

A broker serves these at `http://127.0.0.1:9644/metrics` (`http.listen`), in Prometheus's text
format or OpenMetrics, as the scraper asks. Beside it are `/healthz`, which answers as soon as the
process runs, and `/readyz`, which answers 200 while the broker serves clients, and 503 while it
recovers and while it stops. [`grafana/tidemark.json`](grafana/tidemark.json) is a dashboard made of
these. Each broker is scraped by itself:

```yaml
scrape_configs:
  - job_name: tidemark
    static_configs:
      - targets: ["127.0.0.1:9644", "127.0.0.1:9744", "127.0.0.1:9844"]
```

Labels are bounded, so that a client that makes topics cannot fill a Prometheus: beyond
`metrics.topics.max` topics the rest are counted together under the topic `{OTHER}`, and partitions
and groups beyond `metrics.partitions.max` and `metrics.groups.max` have no series of their own.

A scrape reads counts and the state of the logs when it comes, in a thread of its own; nothing is
kept up to date for it while requests are served. Groups are shown by the brokers that coordinate
them, which ask the others how far partitions are that they have no replica of.
"""

_EXPORTER = """\
## Under the names of kafka_exporter

The same numbers again, so that dashboards made for
[kafka_exporter](https://github.com/danielqsj/kafka_exporter) show brokers that are scraped
themselves. Each has series of the partitions that it leads and of the groups that it coordinates,
so that nothing is there twice when all are added up.
"""

_PROCESS = """\
## The process

`process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_open_fds`,
`process_max_fds`, `process_start_time_seconds` and `process_virtual_memory_bytes`, as every
Prometheus client has them. Where several brokers run in one process, each shows the whole process.
"""


@dataclass(frozen=True)
class _Example:
    """A broker with one of everything, so that every family has its labels."""

    node_id: NodeId = field(default=NodeId(1))
    address: str = "127.0.0.1:9092"

    def partitions(self) -> Sequence[PartitionFigures]:
        nothing = Offset(0)
        return [
            PartitionFigures(
                topic="topic",
                partition=0,
                log_start=nothing,
                high_watermark=nothing,
                log_end=nothing,
                size_bytes=0,
                epoch=Epoch(0),
                lag_records=0,
                staleness_seconds=0.0,
                dirty_ratio=0.0,
                transactions=TransactionFigures(open=0, oldest_seconds=0.0, aborted=0),
            )
        ]

    def topics(self) -> Mapping[str, int]:
        return {"topic": 1}

    def ends_elsewhere(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, Offset]:
        raise AssertionError(f"all are here, and not {partitions}")

    def led(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LedFigures]:
        one = LedFigures(replicas=1, in_sync=1, is_led_by_preferred=True)
        return dict.fromkeys(partitions, one)

    def brokers(self) -> int:
        return 1

    def groups(self) -> Sequence[GroupFigures]:
        committed = [(TopicPartition("topic", 0), Offset(0))]
        return [GroupFigures(group="group", members=0, committed=committed)]

    def leaderless_partitions(self) -> int:
        return 0

    def unclean_replicas(self) -> int:
        return 0

    def disk_free_bytes(self) -> int:
        return 0

    def is_disk_full(self) -> bool:
        return False


def families() -> list[Metric]:
    """Every family of a scrape, with at least one series in each."""
    metrics = Metrics(topics_max=1)
    metrics.topic("topic")
    metrics.api(0).requests.inc()
    metrics.peers.up[NodeId(2)] = True
    metrics.balance.brokers[NodeId(1)] = BrokerFigures(0, 0, "active", True)
    metrics.compaction.set_aside["topic-0"] = ""
    metrics.compaction.unreadable_batches["topic-0"] = 1
    metrics.transactions.ids_by_state = lambda: {"Ongoing": 0}
    metrics.balance.unevenness, metrics.balance.misplaced = 0.0, 0
    limits = Limits(partitions_max=1, groups_max=1)
    return [
        *CountsCollector(metrics).collect(),
        *CompactionCollector(metrics.compaction).collect(),
        *TransactionsCollector(metrics.transactions).collect(),
        *BalanceCollector(metrics.balance).collect(),
        *ReassignmentsCollector(metrics.reassignments).collect(),
        *FiguresCollector(_Example(), metrics, limits).collect(),
    ]


def render() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    everything = families()
    yield _OPENING
    yield "## Our own\n"
    yield from _table(each for each in everything if each.name.startswith("tidemark_"))
    yield _EXPORTER
    yield from _table(each for each in everything if each.name.startswith("kafka_"))
    yield _PROCESS.rstrip()


def _table(rows: Iterable[Metric]) -> Iterator[str]:
    yield "| metric | type | labels | |"
    yield "|---|---|---|---|"
    for family in rows:
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        named = ", ".join(f"`{label}`" for label in sorted(labels))
        yield f"| `{shown_name(family)}` | {family.type} | {named} | {family.documentation} |"
    yield ""


def shown_name(family: Metric) -> str:
    """The name as it is in a scrape: that of a counter ends in `_total`."""
    return family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")


if __name__ == "__main__":
    print(render(), end="")
