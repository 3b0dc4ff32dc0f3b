"""The coordinator of transactions as producers meet it, on one broker."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.broker.handlers.asking import ask
from tests.broker.handlers.marking import write
from tests.broker.nodes import open_node
from tests.broker.transactions.producers import (
    FEW,
    TXN,
    Producer,
    add,
    add_offsets,
    as_leader,
    begin,
    describe,
    end,
    ends,
    find,
    init,
    wait_state,
)
from tidemark.broker.handlers import list_transactions
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.list_transactions import ListTransactionsRequest

NONE = ErrorCode.NONE


async def test_a_transaction_from_its_begin_to_its_markers(tmp_path: Path) -> None:
    async with open_node(tmp_path, **FEW) as node:
        producer = await begin(node, "orders")
        assert (producer.id, producer.epoch) == (0, 0)
        assert await add(node, producer, "orders", 0, 1) == [NONE, NONE]
        state = await describe(node)
        assert state.transaction_state == "Ongoing"
        assert [(each.topic, tuple(each.partitions)) for each in state.topics] == [
            ("orders", (0, 1))
        ]
        assert (await end(node, producer)).error_code == NONE
        await wait_state(node, "CompleteCommit")
        assert ends(node, "orders") == [1, 1], "a marker each"
        assert (await describe(node)).topics == ()


async def test_the_topic_is_made_when_somebody_looks_for_the_coordinator(tmp_path: Path) -> None:
    async with open_node(tmp_path, **FEW) as node:
        assert node.topics.get(TRANSACTION_STATE) is None
        assert (await init(node)).error is ErrorCode.NOT_COORDINATOR
        await find(node)
        topic = node.topics.get(TRANSACTION_STATE)
        assert topic is not None
        assert (topic.is_internal, topic.partition_count) == (True, 2)
        assert topic.config.is_compacted


class TestTakingOver:
    async def test_another_one_fences_the_first(self, tmp_path: Path) -> None:
        async with open_node(tmp_path, **FEW) as node:
            first = await begin(node, "orders")
            second = await init(node)
            assert (second.id, second.epoch) == (first.id, first.epoch + 1)
            assert await add(node, first, "orders", 0) == [ErrorCode.PRODUCER_FENCED]
            older = await add(node, first, "orders", 0, version=1)
            assert older == [ErrorCode.INVALID_PRODUCER_EPOCH], "as its version has it (P15)"
            assert (await end(node, first)).error_code == ErrorCode.PRODUCER_FENCED
            assert (await init(node, before=first)).error is ErrorCode.PRODUCER_FENCED
            assert (
                await init(node, before=first, version=3)
            ).error is ErrorCode.INVALID_PRODUCER_EPOCH

    async def test_what_the_first_has_open_is_aborted(self, tmp_path: Path) -> None:
        async with open_node(tmp_path, **FEW) as node:
            first = await begin(node, "orders")
            await add(node, first, "orders", 0)
            assert (await init(node)).error is ErrorCode.CONCURRENT_TRANSACTIONS
            await wait_state(node, "CompleteAbort")
            assert (await init(node)).error is NONE
            assert ends(node, "orders") == [1, 0]

    async def test_who_names_its_epoch_goes_on_with_the_next(self, tmp_path: Path) -> None:
        async with open_node(tmp_path, **FEW) as node:
            first = await begin(node)
            again = await init(node, before=first)
            assert (again.id, again.epoch) == (first.id, first.epoch + 1)

    @pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
    async def test_p13_a_time_out_must_be_within_its_limit(
        self, tmp_path: Path, timeout_ms: int
    ) -> None:
        async with open_node(tmp_path, **FEW) as node:
            await find(node)
            refused = await init(node, timeout_ms=timeout_ms)
            assert refused.error is ErrorCode.INVALID_TRANSACTION_TIMEOUT


class TestPartitions:
    async def test_all_of_them_or_none(self, tmp_path: Path) -> None:
        async with open_node(tmp_path, **FEW) as node:
            producer = await begin(node, "orders")
            assert await add(node, producer, "orders", 0, 7) == [
                ErrorCode.OPERATION_NOT_ATTEMPTED,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ]
            assert (await describe(node)).transaction_state == "Empty"

    async def test_the_brokers_own_topics_are_no_clients_business(self, tmp_path: Path) -> None:
        async with open_node(tmp_path, **FEW) as node:
            producer = await begin(node)
            refused = await add(node, producer, TRANSACTION_STATE, 0)
            assert refused == [ErrorCode.INVALID_TOPIC_EXCEPTION]

    async def test_a_groups_offsets_are_one_of_them(self, tmp_path: Path) -> None:
        async with open_node(tmp_path, **FEW) as node:
            producer = await begin(node)
            assert await add_offsets(node, producer, "") is ErrorCode.INVALID_GROUP_ID
            assert await add_offsets(node, producer) is NONE
            (topic,) = (await describe(node)).topics
            assert topic.topic == CONSUMER_OFFSETS
            await end(node, producer)
            await wait_state(node, "CompleteCommit")
            assert sum(ends(node, CONSUMER_OFFSETS)) == 1

    async def test_leaders_ask_about_several_transactions_at_once(self, tmp_path: Path) -> None:
        async with open_node(tmp_path, **FEW) as node:
            producer = await begin(node, "orders")
            await add(node, producer, "orders", 0)
            zombie = Producer(NONE, producer.id, producer.epoch - 1)
            asked = [
                (TXN, producer, "orders", (0, 1)),
                (TXN, zombie, "orders", (0,)),
                ("nobody's", producer, "orders", (0,)),
            ]
            assert await as_leader(node, asked, verify=True) == [
                [NONE, ErrorCode.TRANSACTION_ABORTABLE],
                [ErrorCode.PRODUCER_FENCED],
                [ErrorCode.INVALID_PRODUCER_ID_MAPPING],
            ]
            (older, *_) = await as_leader(node, asked, verify=True, version=4)
            assert older == [NONE, ErrorCode.INVALID_TXN_STATE]
            assert await as_leader(node, [], verify=True) == []
            assert await as_leader(node, asked[:1], verify=False) == [[NONE, NONE]]
            assert await as_leader(node, asked[:1], verify=True) == [[NONE, NONE]]


class TestEpochs:
    async def test_an_end_answers_with_the_next_epoch_to_who_knows_of_it(
        self, tmp_path: Path
    ) -> None:
        async with open_node(tmp_path, **FEW) as node:
            producer = await begin(node, "orders")
            await as_leader(node, [(TXN, producer, "orders", (0,))], verify=False)
            ended = await end(node, producer, version=5)
            assert (ended.producer_id, ended.producer_epoch) == (producer.id, producer.epoch + 1)
            await wait_state(node, "CompleteCommit")
            again = await end(node, producer, version=5)
            assert again == ended, "whose answer was lost is answered the same"
            late = await add(node, producer, "orders", 0)
            assert late == [ErrorCode.PRODUCER_FENCED]

    async def test_a_transaction_ends_as_its_end_says_whoever_began_it(
        self, tmp_path: Path
    ) -> None:
        """A client may have its partition's leader begin it, and yet know no newer EndTxn."""
        async with open_node(tmp_path, **FEW) as node:
            producer = await begin(node, "orders")
            await as_leader(node, [(TXN, producer, "orders", (0,))], verify=False)
            topic = node.topics.get("orders")
            assert topic is not None
            replica = topic.replicas[0]
            await write(replica, producer.id, epoch=producer.epoch)
            assert replica.last_stable_offset == 0
            assert (await end(node, producer)).error_code == NONE
            await wait_state(node, "CompleteCommit")
            assert replica.last_stable_offset == replica.high_watermark == 2


class TestAfterARestart:
    async def test_what_was_open_is_open(self, tmp_path: Path) -> None:
        async with open_node(tmp_path, **FEW) as node:
            producer = await begin(node, "orders")
            await add(node, producer, "orders", 0)
        async with open_node(tmp_path, **FEW) as node:
            await node.transactions.wait_loaded()
            assert (await describe(node)).transaction_state == "Ongoing"
            assert await add(node, producer, "orders", 1) == [NONE]
            await end(node, producer, commit=False)
            await wait_state(node, "CompleteAbort")
            assert ends(node, "orders") == [1, 1]


class TestTime:
    async def test_a_transaction_that_is_left_open_is_aborted_and_its_producer_fenced(
        self, tmp_path: Path
    ) -> None:
        async with open_node(tmp_path, **FEW) as node:
            await begin(node, "orders")
            producer = await init(node, timeout_ms=50)
            await add(node, producer, "orders", 0)
            await wait_state(node, "CompleteAbort")
            assert ends(node, "orders") == [1, 0]
            assert await add(node, producer, "orders", 0) == [ErrorCode.PRODUCER_FENCED]
            again = await init(node, before=producer)
            assert again.error is NONE, "it was late, but it is the same one (KIP-360)"

    async def test_an_id_that_nobody_uses_is_forgotten(self, tmp_path: Path) -> None:
        soon = {
            "transactional_id_expiration_ms": 1,
            "transaction_remove_expired_transaction_cleanup_interval_ms": 20,
        }
        async with open_node(tmp_path, **FEW, **soon) as node:
            await begin(node)
            with trio.fail_after(20):
                while (await describe(node)).error_code == NONE:  # noqa: ASYNC110
                    await trio.sleep(0.01)
            assert (await describe(node)).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class TestMarkers:
    async def test_a_deleted_topic_holds_nobody_up(self, tmp_path: Path) -> None:
        async with open_node(tmp_path, **FEW) as node:
            producer = await begin(node, "orders", "gone")
            await add(node, producer, "orders", 0)
            await add(node, producer, "gone", 0, 1)
            gone = node.topics.get("gone")
            assert gone is not None
            await node.topics.delete(gone)
            await end(node, producer)
            await wait_state(node, "CompleteCommit")
            assert node.metrics.transactions.markers_owed == 0


async def test_ids_are_listed_by_what_is_asked_for(tmp_path: Path) -> None:
    async def listed(version: int = 1, **given: object) -> list[str]:
        request = ListTransactionsRequest(**given)  # type: ignore[arg-type] # the test names them
        answer = await ask(list_transactions.handle, node, request, version)
        return sorted(each.transactional_id for each in answer.transaction_states)

    async with open_node(tmp_path, **FEW) as node:
        producer = await begin(node, "orders")
        await add(node, producer, "orders", 0)
        other = await init(node, "idle")
        assert await listed() == ["idle", TXN]
        assert await listed(state_filters=["Ongoing"]) == [TXN]
        assert await listed(producer_id_filters=[other.id]) == ["idle"]
        assert await listed(producer_id_filters=[other.id, other.id, 99]) == ["idle"]
        assert await listed(duration_filter=60_000) == []
        assert await listed(duration_filter=-1) == ["idle", TXN]
        await trio.sleep(0.01)
        assert await listed(duration_filter=1) == [TXN]
        assert await listed(2, transactional_id_pattern="i.*") == ["idle"]
        states = ["Odd", "Dead", "ongoing", "Odd", "PrepareEpochFence"]
        request = ListTransactionsRequest(state_filters=states)
        odd = await ask(list_transactions.handle, node, request, 0)
        assert (odd.unknown_state_filters, odd.transaction_states) == (("Odd", "ongoing"), ())
