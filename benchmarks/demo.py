"""`make demo`: the main job, on real input, with every part that a user would touch.

The input is there on every machine: the source of Python's own standard library, a record a line,
keyed by module. It goes in through the command line, comes back through librdkafka and through
PySpark, and each answer is compared with what the files themselves say. In between the broker is
killed without warning and started again.
"""

import json
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from rich.console import Console
from rich.table import Table

from tidemark.testing.process import BrokerProcess, open_broker_process

TOPIC = "stdlib"
PARTITIONS = 4
LINES_MAX = 200_000

console = Console(highlight=False)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tidemark-demo-") as folder:
        source = Path(folder) / "stdlib.jsonl"
        with step("read the standard library's source"):
            truth = write_input(source)
            console.print(f"  {truth.total():,} lines of {len(truth)} modules")
        with open_broker_process(Path(folder) / "data") as broker:
            show_process(broker)
            run_demo(broker, source, truth)
    console.print("[bold green]Everything came back as it went in.")


def run_demo(broker: BrokerProcess, source: Path, truth: Counter[str]) -> None:
    with step("create a topic and produce with the command line"):
        cli(broker, "topic", "create", TOPIC, "--partitions", str(PARTITIONS))
        cli(broker, "produce", TOPIC, str(source), "--json", "--compression", "zstd")
        console.print(cli(broker, "topic", "describe", TOPIC))
    with step("kill -9 the broker, and start it again"):
        broker.kill()
        start = time.monotonic()
        broker.start()
        console.print(f"  serving again after {time.monotonic() - start:.2f} s")
    with step("consume with librdkafka"):
        counted = count_with_librdkafka(broker)
        assert counted == truth, "librdkafka read something else than was written"
        console.print(f"  {counted.total():,} records, each module's count is right")
    with step("count by module with PySpark, one task a partition"):
        by_module = count_with_spark(broker)
        assert by_module == truth, "Spark read something else than was written"
        show_counts(by_module)
    with step("scrape the metrics"):
        show_metrics(broker)


def write_input(path: Path) -> Counter[str]:
    """Write the input as JSON lines; returns how many lines each module has."""
    library = Path(sysconfig.get_path("stdlib"))
    lines: Counter[str] = Counter()
    with path.open("w") as file:
        for module in sorted(library.glob("*.py")) + sorted(library.glob("*/*.py")):
            if "site-packages" in module.parts or lines.total() >= LINES_MAX:
                continue
            name = ".".join(module.relative_to(library).with_suffix("").parts)
            for line in module.read_text(errors="replace").splitlines():
                file.write(json.dumps({"key": name, "value": line}) + "\n")
                lines[name] += 1
    return lines


def cli(broker: BrokerProcess, *arguments: str) -> str:
    """Run the `tidemark` command against the broker, as a user would; its output."""
    command = [sys.executable, "-m", "tidemark.cli.main", "--bootstrap", broker.bootstrap]
    console.print(f"  [dim]$ tidemark {' '.join(arguments)}")
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip()


def count_with_librdkafka(broker: BrokerProcess) -> Counter[str]:
    """Records by key, read to the end of every partition."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "demo"})
    partitions = [TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)]
    remaining = sum(consumer.get_watermark_offsets(part, timeout=10)[1] for part in partitions)
    consumer.assign(partitions)
    counted: Counter[str] = Counter()
    while remaining:
        for message in consumer.consume(10_000, 1.0):
            assert message.error() is None, message.error()
            key = message.key()
            assert isinstance(key, bytes)
            counted[key.decode()] += 1
            remaining -= 1
    consumer.close()
    return counted


def count_with_spark(broker: BrokerProcess) -> Counter[str]:
    from tidemark.client.spark import session

    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = session("local[2]", config=quiet)
    spark.sparkContext.setLogLevel("ERROR")
    frame = (
        spark.read.format("tidemark")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", TOPIC)
        .load()
    )
    rows = frame.selectExpr("CAST(key AS STRING) AS module").groupBy("module").count().collect()
    spark.stop()
    return Counter({row["module"]: row["count"] for row in rows})


def show_process(broker: BrokerProcess) -> None:
    console.print(f"[bold]A broker runs: kafka={broker.bootstrap} http={broker.http}")


def show_counts(counts: Counter[str]) -> None:
    table = Table("module", "lines")
    for module, lines in counts.most_common(5):
        table.add_row(module, f"{lines:,}")
    console.print(table)


def show_metrics(broker: BrokerProcess) -> None:
    with urllib.request.urlopen(f"http://{broker.http}/metrics", timeout=10) as response:
        text = response.read().decode()
    shown = [line for line in text.splitlines() if f'topic="{TOPIC}"' in line and "{" in line]
    for line in shown[:8]:
        console.print(f"  {line}")
    assert shown, "the topic is in no metric"


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is done, and how long it took."""
    console.print(f"[bold cyan]{what}")
    start = time.monotonic()
    yield
    console.print(f"  [dim]{time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
