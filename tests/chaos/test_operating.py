"""The operator's own errors are not taken for the cluster's, nor the other way round."""

import time
from pathlib import Path

from tests.chaos.operating import Operator
from tests.chaos.operations import Place


def test_an_operator_who_comes_when_all_brokers_are_down_tries_again(tmp_path: Path) -> None:
    place = Place([1], topics=list, movable=list, replicas=len, partitions=1)
    log = tmp_path / "log"
    operator = Operator("127.0.0.1:1", place, 1, log)
    with operator.running():
        deadline = time.monotonic() + 60
        while not log.exists() and not operator.problems and time.monotonic() < deadline:
            time.sleep(0.05)
    assert "no broker answers" in log.read_text()
    assert operator.problems == ["nobody says whether what was asked for is done"]
