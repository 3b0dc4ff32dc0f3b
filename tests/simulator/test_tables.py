"""The judge that compares what replicas know of transactions with what their logs give."""

import pytest

from tests.simulator.calm import CALM
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.state_machines.open_transactions import Opened
from tidemark.protocol.types import Offset, ProducerId
from tidemark.testing.simulator.run import simulate
from tidemark.testing.simulator.transactions import inspecting
from tidemark.testing.simulator.transactions.tables import AS_IN_ITS_LOG, judge_table


def judged_after(monkeypatch: pytest.MonkeyPatch, harm: str) -> str | None:
    """The invariant that a run breaks, one of whose tables knows something else in the end."""

    def judge(replica: GroupReplica) -> None:
        judge_table(replica)
        transactions = replica.producers.transactions
        if harm == "open" and transactions:
            transactions.opened[ProducerId(77)] = Opened(Offset(0), 0)
        elif harm == "forgotten" and transactions.aborted_count:
            transactions.trim(replica.log_end)
        judge_table(replica)

    monkeypatch.setattr(inspecting, "judge_table", judge)
    return simulate(1, knobs=CALM).invariant


@pytest.mark.parametrize("harm", ["open", "forgotten"])
def test_a_table_that_says_something_else_is_noticed(
    monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    assert judged_after(monkeypatch, harm) == AS_IN_ITS_LOG


def test_and_one_that_says_what_its_log_says_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged_after(monkeypatch, "nothing") is None
