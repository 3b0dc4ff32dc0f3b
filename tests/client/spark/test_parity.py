"""The tables of `docs/spark.md` beside Spark's connector: each yes is a test, each no a reason."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tidemark.client.spark.options import KNOWN, WITHOUT_EFFECT
from tidemark.client.spark.sink_options import SINK_KNOWN

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "spark.md").read_text()
TESTS = frozenset(
    name
    for folder in ("tests/client", "tests/clients")
    for path in (ROOT / folder).rglob("test_*.py")
    for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
)
# As Spark's guide lists them, 4.x.
OF_SPARK = (
    "assign",
    "subscribe",
    "subscribePattern",
    "kafka.bootstrap.servers",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "endingOffsets",
    "failOnDataLoss",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "groupIdPrefix",
    "kafka.group.id",
    "includeHeaders",
    "startingOffsetsByTimestampStrategy",
    "topic",
)


class Line(NamedTuple):
    """One line of a table."""

    what: str
    answer: str
    said: str


def lines() -> list[Line]:
    section = PAGE.split("## Beside Spark's own Kafka source and sink")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    return [Line(*row) for row in cells if row[1] in ("yes", "no")]


@pytest.mark.parametrize("line", lines(), ids=lambda line: line.what)
def test_each_yes_is_a_test_and_each_no_has_a_reason(line: Line) -> None:
    named = re.findall(r"`(test_\w+)`", line.said)
    if line.answer == "yes":
        assert named
        assert TESTS.issuperset(named)
    else:
        assert not named
        assert len(line.said) > 20


def test_every_option_of_spark_s_own_is_in_the_tables() -> None:
    options = {name for line in lines() for name in re.findall(r"`([\w.*]+)`", line.what)}
    assert not set(OF_SPARK) - options


def test_every_option_there_is_has_its_line() -> None:
    text = re.sub(r"^```.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    documented = set(re.findall(r"`([\w.]+)`", text))
    assert not {*KNOWN, *WITHOUT_EFFECT, *SINK_KNOWN} - documented
