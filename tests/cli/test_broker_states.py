"""`tidemark broker` and `tidemark leader balance`. What they do is tested where
there are several brokers."""

import json
from dataclasses import replace

import pytest

from tests.cli.conftest import Command
from tidemark.cli import broker_states
from tidemark.cli.broker_status import _farewell, _row
from tidemark.cli.leader_balance import _moves, _refusals
from tidemark.client import BalancePlan, BrokerStatus, PlannedMove, RefusedMove, TopicPartition
from tidemark.protocol.types import NodeId


def test_status_shows_what_a_broker_leads_and_holds(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "2")
    (row,) = json.loads(command("broker", "status", "-o", "json").out)
    assert (row["node_id"], row["state"], row["up"], row["controller"]) == (1, "active", True, True)
    assert row["leaders"] == row["replicas"] >= 2
    assert command("broker", "status", "1").out.startswith(b"NODE-ID  STATE   UP   CONTROLLER")
    assert b"RACK" in command("broker", "status", "-o", "wide").out


@pytest.mark.parametrize("verb", ["status", "drain", "resume", "decommission"])
def test_a_broker_that_is_not_there_is_said_to_be_none(command: Command, verb: str) -> None:
    result = command("broker", verb, "9")
    assert result.status == 1
    assert "there is no broker 9" in result.err


def test_the_last_broker_is_neither_drained_nor_let_go(command: Command, name: str) -> None:
    command("topic", "create", name, "-p", "1")
    for verb, why in (("drain", "nobody could take over"), ("decommission", "0 brokers to hold")):
        result = command("broker", verb, "1", "--dry-run")
        assert result.status == 1
        assert why in result.err
    (row,) = json.loads(command("broker", "resume", "1", "-o", "json").out)
    assert row["state"] == "active"


def test_balance_says_what_is_uneven(command: Command) -> None:
    result = command("leader", "balance", "--dry-run", "--explain", "--now", "-o", "json")
    assert result.status == 0
    plan = json.loads(result.out)
    assert (plan["moves"], plan["begun"], plan["balances_by_itself"]) == ([], False, True)
    *terms, in_all = plan["unevenness"]
    assert in_all["term"] == "in all"
    of_terms = [term["weight"] * term["before"] for term in terms if term["weight"] is not None]
    assert in_all["before"] == pytest.approx(sum(of_terms))
    (broker,) = plan["brokers"]
    assert broker["leaders"] == broker["leaders_then"]
    assert type(broker["traffic"]) is float
    shown = command("leader", "balance", "--dry-run", "--explain").out
    assert b"UNEVENNESS" in shown
    assert f"{broker['traffic']:.1%}".encode() in shown
    assert b"UNEVENNESS" not in command("leader", "balance", "--dry-run").out


def test_waiting_for_even_leaders_has_an_end(command: Command) -> None:
    done = command("leader", "balance", "--wait", "--timeout", "0.001")
    assert done.status == 1
    assert "leaders are not even within 0.001 s; they go on moving" in done.err
    assert command("leader", "balance", "--wait", "--timeout", "30").status == 0


def status(state: str, left: float | None) -> BrokerStatus:
    return BrokerStatus(
        node_id=NodeId(1),
        rack=None,
        is_alive=True,
        up_seconds=1.0,
        state=state,
        is_controller=False,
        leaders=3,
        replicas=4,
        size_bytes=5,
        bytes_in_per_second=6,
        bytes_out_per_second=7,
        leaders_coming=0,
        leaders_going=1,
        replicas_going=0,
        left_seconds=left,
        stuck=(),
    )


@pytest.mark.parametrize(
    ("state", "left", "shown"),
    [
        ("active", None, None),
        ("drained", 0.0, None),
        ("draining", None, "?"),
        ("decommissioning", 12.4, "12 s"),
    ],
)
def test_what_is_left_is_shown_while_something_is(
    state: str, left: float | None, shown: str | None
) -> None:
    assert _row(status(state, left))["left"] == shown


@pytest.mark.parametrize(
    ("is_alive", "left"), [(True, "stop it, and some seconds"), (False, "some seconds")]
)
def test_only_a_broker_that_runs_is_to_be_stopped(is_alive: bool, left: str) -> None:
    broker = replace(status("decommissioned", None), is_alive=is_alive)
    assert _farewell(broker).startswith(f"broker 1 holds nothing any more: {left} later")


def test_moves_and_refusals_are_rows() -> None:
    at = TopicPartition("t", 0)
    plan = BalancePlan(
        is_enabled=True,
        terms=(),
        brokers=(),
        moves=(
            PlannedMove(
                topic_partition=at,
                source=NodeId(1),
                target=NodeId(2),
                step=1,
                gain=0.0,
                reason="broker 1 is draining",
            ),
        ),
        refusals=(
            RefusedMove(
                reason="drained",
                sentence="broker 1 is drained",
                target=NodeId(1),
                topic_partition=None,
                partitions=3,
            ),
        ),
    )
    (move,) = _moves(plan)
    assert (move["partition"], move["gain"], move["why"]) == ("t-0", None, "broker 1 is draining")
    (refused,) = _refusals(plan)
    assert (refused["to"], refused["such_as"], refused["partitions"]) == (1, None, 3)


def test_a_dry_run_does_not_say_that_a_broker_is_drained(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(broker_states, "notice", said.append)
    done = command("broker", "drain", "1", "--force", "--dry-run")
    assert (done.status, said) == (0, [])


def test_what_a_decommission_would_move_is_shown_with_the_question(command: Command) -> None:
    asked = command("broker", "decommission", "1", "--force", "-o", "json")
    assert (asked.status, asked.out) == (2, b"")
    assert "REPLICAS" in asked.err
    assert "say --yes" in asked.err
    looked = command("broker", "decommission", "1", "--force", "--dry-run", "-o", "json")
    assert json.loads(looked.out)["broker"] == 1
