"""Running a suite that is made of pytest tests, in its own checkout."""

import json
import os
import subprocess
import xml.etree.ElementTree as xml
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.clients.peers.results import Outcome, Result, reason_for

PLUGINS = Path(__file__).with_name("plugins")


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestSuite:
    """How a project's tests are run against a broker that is there already."""

    arguments: Sequence[str]
    """What to collect, from the root of the checkout, and how."""
    plugin: str
    """The module in `plugins/` that puts our broker in the place of theirs."""
    not_applicable: Mapping[str, str]
    """Tests that are not run, as patterns of their names, each with the reason."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Tests that fail, and why."""
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of the broker."""

    def run(
        self, checkout: Path, python: Path, bootstrap: str, *, only: str | None = None
    ) -> list[Result]:
        with TemporaryDirectory() as directory:
            report = Path(directory) / "report.xml"
            command = [str(python), "-m", "pytest", *self.arguments, "-p", self.plugin]
            command += ["-p", "tidemark_skipping", f"--junitxml={report}", "-q", "--tb=short"]
            command += ["-k", only] if only else []
            subprocess.run(
                command, cwd=checkout, env=self._environment(bootstrap, checkout), check=False
            )
            return [self._judged(result) for result in read_report(report)]

    def _environment(self, bootstrap: str, checkout: Path) -> dict[str, str]:
        host, _, port = bootstrap.partition(",")[0].rpartition(":")
        added = {
            "TIDEMARK_HOST": host,
            "TIDEMARK_PORT": port,
            "TIDEMARK_NOT_APPLICABLE": json.dumps(dict(self.not_applicable)),
            "PYTHONPATH": f"{PLUGINS}{os.pathsep}{PLUGINS / 'stubs'}{os.pathsep}{checkout}",
        }
        theirs = {
            name: value.format(host=host, port=port) for name, value in self.environment.items()
        }
        return {**os.environ, **added, **theirs}

    def _judged(self, result: Result) -> Result:
        why = reason_for(result.test, self.known)
        if result.outcome is Outcome.FAILED and why is not None:
            return Result(test=result.test, outcome=Outcome.FAILED, reason=why)
        return result


def read_report(report: Path) -> Iterator[Result]:
    """The results in pytest's report."""
    for case in xml.parse(report).getroot().iter("testcase"):
        module = case.get("classname", "").rpartition("tests.")[2].removeprefix("test.")
        test = f"{module}::{case.get('name')}".removeprefix("integration.")
        skipped = case.find("skipped")
        broken = case.find("failure")
        if broken is None:
            broken = case.find("error")
        if broken is not None:
            yield Result(test=test, outcome=Outcome.FAILED, reason=_last_line(broken))
        elif skipped is not None:
            reason = skipped.get("message", "").removeprefix("Skipped: ")
            yield Result(test=test, outcome=Outcome.NOT_APPLICABLE, reason=reason)
        else:
            yield Result(test=test, outcome=Outcome.PASSED)


def _last_line(broken: xml.Element) -> str:
    return broken.get("message", "").strip().partition("\n")[0][:200]
