"""The report says what was injected and what was not, and why."""

import json
from io import StringIO

from rich.console import Console

from tests.chaos.report import Report
from tests.chaos.workload.workload import Workload


def said(report: Report) -> str:
    """To somebody whose run had no clients yet."""
    written = StringIO()
    workload = Workload("127.0.0.1:1", nodes=[1, 2, 3], sends_per_second=1.0, seed=1)
    report.print(Console(file=written, width=200), workload)
    assert json.loads(report.as_json(workload))["good"] is report.is_good
    return written.getvalue()


def lines(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if word in line]


def test_a_kind_that_there_was_no_time_for_is_told() -> None:
    report = Report(1, "random", ["a lab"], {"late network": "needs proxies"}, None)
    report.planned(["kill one", "full disk"])
    report.recovered(["kill one"], ["kill -9 of 2"], 1.5)
    text = said(report)
    assert "1.50 s" in lines(text, "kill one")[0]
    assert "there was no time for it" in lines(text, "full disk")[0]
    assert "needs proxies" in lines(text, "late network")[0]
    assert "no time for the rest" not in text


def test_a_schedule_that_was_not_gone_through_is_told() -> None:
    report = Report(1, "cuts", ["a lab"], {}, None)
    report.is_cut_short = True
    assert "no time for the rest" in said(report)


def test_who_is_not_served_again_is_wrong() -> None:
    report = Report(1, "random", ["a lab"], {}, None)
    report.recovered(["kill one"], ["kill -9 of 2"], None)
    assert not report.is_good
    assert "not served again after kill -9 of 2" in said(report)


def test_how_soon_the_others_served_while_one_was_away_is_told() -> None:
    report = Report(1, "random", ["a lab"], {}, None)
    report.served_beside(["cut 1→2"], 2.5)
    assert "1 times, in 2.5 s" in said(report)
    assert report.is_good


def test_that_the_others_do_not_serve_while_one_is_away_is_wrong() -> None:
    report = Report(1, "random", ["a lab"], {}, None)
    report.served_beside(["cut 1→3"], None)
    assert not report.is_good
    assert "not served beside cut 1→3" in said(report)
