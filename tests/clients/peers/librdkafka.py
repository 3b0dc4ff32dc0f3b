"""librdkafka's own tests, which are one program that runs a test by its number."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.clients.peers.results import Outcome, Result, reason_for

SECONDS_MAX: Final = 180
_LISTED: Final = re.compile(r"\b_TEST\((\d{4}_\w+),((?:(?!_TEST\().)*)", re.DOTALL)
_PASSED: Final = re.compile(r"= Test \w+ PASSED =")
_FAILURE: Final = re.compile(r"^### Test .*\n(.*)", re.MULTILINE)
_COLOURS: Final = re.compile(r"\x1b\[\d+m")

_ADMIN: Final = (
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "DescribeConfigs",
    "DescribeConfigs_groups",
    "DeleteRecords",
    "ListConsumerGroups",
    "DescribeConsumerGroups",
    "DescribeTopics",
    "DescribeCluster",
    "DeleteGroups",
    "DeleteConsumerGroupOffsets",
    "AlterConsumerGroupOffsets",
    "ListConsumerGroupOffsets",
    "ListOffsets",
    "CreateAcls",
    "DescribeAcls",
    "DeleteAcls",
    "UserScramCredentials",
)
_PARTS: Final[Mapping[str, Sequence[str]]] = {"0081_admin": _ADMIN}
"""Tests that end with the first part that fails, and the parts: these are run one by one."""

_NOT_HERE: Final[Mapping[str, str]] = {
    "0052_*": "it needs Kafka's own command line",
    "0077_*": "it needs Kafka's own command line",
    "0109_*": "it needs Kafka's own command line",
    "0115_*": "it needs Kafka's own command line",
    "0119_*": "it needs Kafka's own command line",
    "0064_*": "it needs a library of its own that is built with it",
    "0142_*": "it needs SASL/OAUTHBEARER",
    "01[78]?_share*": "there are no share groups",
    "0190_*": "there are no share groups",
    "015[5-8]_share*": "there are no share groups",
}


_KNOWN: Final[Mapping[str, str]] = {
    "0081_admin/*AlterConfigs": "it sets a Kerberos setting of a broker while it runs; what has no "
    "meaning is refused here",
    "0103_transactions": "it wants three replicas: with `--brokers 3`, see below",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrdkafkaSuite:
    """How its `test-runner` is run against a broker that is there already."""

    not_applicable: Mapping[str, str] = field(default_factory=lambda: _NOT_HERE)
    known: Mapping[str, str] = field(default_factory=lambda: _KNOWN)
    settings: Mapping[str, str] = field(
        default_factory=lambda: {"group.initial.rebalance.delay.ms": "3000"}
    )

    def run(
        self, checkout: Path, python: Path, bootstrap: str, *, only: str | None = None
    ) -> list[Result]:
        del python
        with TemporaryDirectory() as directory:
            conf = Path(directory) / "test.conf"
            conf.write_text(f"bootstrap.servers={bootstrap}\n")
            environment = {
                **os.environ,
                "RDKAFKA_TEST_CONF": str(conf),
                "TEST_KAFKA_VERSION": "4.0.0",
                "LD_LIBRARY_PATH": f"{checkout / 'src'}:{checkout / 'src-cpp'}",
            }
            names = [name for name in listed(checkout) if only is None or only in name]
            return [self._result(name, checkout / "tests", environment) for name in names]

    def _result(self, name: str, directory: Path, environment: Mapping[str, str]) -> Result:
        why = reason_for(name, self.not_applicable)
        if why is not None:
            return Result(test=name, outcome=Outcome.NOT_APPLICABLE, reason=why)
        outcome, reason = run_one(name, directory, environment)
        known = reason_for(name, self.known)
        if outcome is Outcome.FAILED and known is not None:
            reason = known
        print(f"{name}: {outcome} {reason}", flush=True)
        return Result(test=name, outcome=outcome, reason=reason)


def listed(checkout: Path) -> Iterator[str]:
    """The tests that talk to a broker, from the list that the program is made of."""
    source = (checkout / "tests" / "test.c").read_text()
    for name, arguments in _LISTED.findall(source):
        if "TEST_F_LOCAL" not in arguments and "TEST_F_MANUAL" not in arguments:
            yield from (f"{name}/{part}" for part in _PARTS[name]) if name in _PARTS else (name,)


def run_one(name: str, directory: Path, environment: Mapping[str, str]) -> tuple[Outcome, str]:
    """One test in a process of its own: -Q is quick, -E without simulated networks."""
    try:
        done = subprocess.run(
            ["./test-runner", "-p1", "-Q", "-E"],
            cwd=directory,
            env={**environment, **_chosen(name)},
            capture_output=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome.FAILED, f"it did not end within {SECONDS_MAX} s"
    said = _COLOURS.sub("", (done.stdout + done.stderr).decode(errors="replace"))
    if done.returncode == 0 and not _PASSED.search(said):
        return Outcome.NOT_APPLICABLE, _why_skipped(said)
    if done.returncode == 0:
        return Outcome.PASSED, ""
    found = _FAILURE.findall(said)
    return Outcome.FAILED, found[0][:200] if found else f"exit status {done.returncode}"


def _chosen(name: str) -> dict[str, str]:
    test, _, part = name.partition("/")
    return {"TESTS": test, "SUBTESTS": f"do_test_{part}"} if part else {"TESTS": test}


def _why_skipped(said: str) -> str:
    lines = [line for line in said.splitlines() if "SKIPPING" in line]
    return lines[0].rpartition("SKIPPING TEST")[2].strip(" :") if lines else "it skips itself"
