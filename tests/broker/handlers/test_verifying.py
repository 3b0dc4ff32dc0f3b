"""Before the first batch of a transaction is appended, its coordinator is asked, and the answer is
true until a marker comes. The coordinator is a script here."""

from pathlib import Path

import pytest
import trio

from tests.broker.handlers.coordinators import asked_of
from tests.broker.handlers.marking import end
from tests.broker.handlers.producing import batch, new_topic, produce_all, request
from tests.broker.nodes import open_node
from tidemark.broker.network.requests import NotNow
from tidemark.broker.node import Node
from tidemark.broker.replicas import verifying
from tidemark.broker.replicas.held import HeldTask
from tidemark.partitions.replication.outbox import GroupChange
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import ProducerId

OLD, ABORTABLE, ADDING = 10, 11, 12
"""Produce versions: of librdkafka, of Java without the feature, and with it."""


async def produce(
    node: Node,
    sequence: int = 0,
    *,
    epoch: int = 0,
    version: int = OLD,
    transactional_id: str | None = "mine",
) -> ErrorCode:
    """What becomes of a batch, taken again as a connection does whenever it was held."""
    made = batch(producer_id=7, producer_epoch=epoch, base_sequence=sequence, is_transactional=True)
    while True:
        try:
            (answer,) = await produce_all(
                node, request(made, transactional_id=transactional_id), version
            )
        except NotNow as held:
            waiter = HeldTask()
            held.line.join(waiter, len(made))  # type: ignore[arg-type]  # it stands for a connection
            await waiter.wait()
        else:
            return ErrorCode(answer.error_code)


async def test_only_the_first_batch_of_a_transaction_is_asked_about(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        coordinator = asked_of(node, ErrorCode.NONE)
        assert await produce(node) is ErrorCode.NONE
        assert await produce(node, 1) is ErrorCode.NONE
        (question,) = coordinator.asked
        assert (question.producer_id, question.producer_epoch) == (7, 0)
        assert question.verify_only
        await end(node, 7, commit=True)
        assert await produce(node, 2) is ErrorCode.NONE
        assert len(coordinator.asked) == 2


async def test_for_newer_clients_the_leader_adds_the_partition(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        coordinator = asked_of(node, ErrorCode.NONE)
        assert await produce(node, version=ADDING) is ErrorCode.NONE
        assert not coordinator.asked[0].verify_only


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, OLD, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, OLD, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, OLD, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
async def test_what_is_in_no_open_transaction_is_refused(
    tmp_path: Path, said: ErrorCode, version: int, told: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        coordinator = asked_of(node, said, ErrorCode.NONE)
        assert await produce(node, version=version) is told
        assert replica.log_end == 0
        assert await produce(node, version=version) is ErrorCode.NONE
        assert len(coordinator.asked) == 2


async def test_a_late_batch_does_not_come_in_by_an_answer_from_before_the_marker(
    tmp_path: Path,
) -> None:
    """It was sent in the transaction that ends while the coordinator is being asked."""
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        coordinator = asked_of(node, ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE)
        coordinator.before_answer = lambda: end(node, 7, commit=True)
        assert await produce(node) is ErrorCode.INVALID_TXN_STATE
        assert len(coordinator.asked) == 2
        assert replica.log_end == 1  # the marker


async def test_an_answer_that_nobody_used_is_worth_nothing_after_the_marker(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        coordinator = asked_of(node, ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE)
        await node.verifier.confirm(replica, "mine", ProducerId(7), 0, adds=False)
        await end(node, 7, commit=False)
        assert await produce(node) is ErrorCode.INVALID_TXN_STATE
        assert len(coordinator.asked) == 2


async def test_a_coordinator_that_is_busy_or_gone_is_asked_again(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        codes = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NETWORK_EXCEPTION, ErrorCode.NONE
        coordinator = asked_of(node, *codes)
        assert await produce(node) is ErrorCode.NONE
        assert len(coordinator.asked) == 3


async def test_who_waits_for_long_is_told_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "ANSWER_SECONDS_MAX", 0.1)
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        asked_of(node, ErrorCode.CONCURRENT_TRANSACTIONS)
        assert await produce(node) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert replica.log_end == 0


async def test_a_batch_in_a_transaction_of_no_name_is_refused(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        coordinator = asked_of(node, ErrorCode.NONE)
        assert await produce(node, transactional_id=None) is ErrorCode.INVALID_TXN_STATE
        assert coordinator.asked == []


async def test_who_is_fenced_is_not_asked_about(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        coordinator = asked_of(node, ErrorCode.NONE)
        await end(node, 7, commit=False, epoch=3)
        assert await produce(node, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert coordinator.asked == []


async def test_a_new_epoch_is_asked_about_though_the_old_one_has_a_transaction_open(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        coordinator = asked_of(node, ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE)
        assert await produce(node) is ErrorCode.NONE
        assert await produce(node, epoch=1) is ErrorCode.INVALID_TXN_STATE
        assert [each.producer_epoch for each in coordinator.asked] == [0, 1]


async def test_epochs_that_wait_side_by_side_each_find_their_answer(tmp_path: Path) -> None:
    """A late request of an old epoch, and one of the epoch that its coordinator has raised it to:
    neither of them has anything in the log yet."""
    async with open_node(tmp_path) as node:
        await new_topic(node)
        coordinator = asked_of(node, ErrorCode.TRANSACTION_ABORTABLE)
        told: dict[int, ErrorCode] = {}

        async def take(epoch: int) -> None:
            told[epoch] = await produce(node, epoch=epoch)

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take, 0)
                nursery.start_soon(take, 1)
        assert told == dict.fromkeys((0, 1), ErrorCode.INVALID_TXN_STATE)
        assert sorted(each.producer_epoch for each in coordinator.asked) == [0, 1]


async def test_a_coordinator_of_groups_asks_the_same(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        coordinator = asked_of(node, ErrorCode.PRODUCER_FENCED, ErrorCode.NONE)
        with pytest.raises(RequestError, match="PRODUCER_FENCED"):
            await node.verifier.confirm(replica, "mine", ProducerId(7), 0, adds=True)
        await node.verifier.confirm(replica, "mine", ProducerId(7), 0, adds=True)
        assert [each.verify_only for each in coordinator.asked] == [False, False]


async def test_an_answer_holds_for_one_leadership(tmp_path: Path) -> None:
    """Who leads meanwhile may have written a marker that this broker has not led by."""
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        coordinator = asked_of(node, ErrorCode.NONE)
        await node.verifier.confirm(replica, "mine", ProducerId(7), 0, adds=False)
        replica.member.fail("it is resigning")
        replica.changed(GroupChange(replica.key, leadership=True))
        assert replica.verifications.find(ProducerId(7), 0) is None
        assert len(coordinator.asked) == 1
