"""Produce requests that are like an earlier one of their connection: they are not decoded."""

from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from tests.broker.handlers.produce_connection import Connection, connect, values
from tests.broker.handlers.producing import batch, new_topic, request
from tests.broker.held_disk import HeldDisk
from tests.broker.nodes import open_node
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.metrics import BadInput
from tidemark.broker.network.calls import Call
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.produce import (
    PartitionProduceResponse,
)

__all__ = ["connect"]


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", [3, 7, 9, 12, 13])
async def test_it_is_answered_as_the_first_one_was(
    tmp_path: Path, connect: Callable[[Node], Connection], version: int, acks: int
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os")
        client = connect(node)
        for number in range(4):
            asked = request(batch(b"%d" % number), acks=acks, topic_id=replica.topic_id)
            answer = client.answer(asked, version)
            assert answer == PartitionProduceResponse(
                index=0, base_offset=number, log_start_offset=0 if version >= 5 else -1
            )
        assert values(replica) == [b"0", b"1", b"2", b"3"]
        assert len(client.decoded) == (4 if version == 3 else 1)
        assert node.metrics.api(0).requests.value == 4


async def test_by_its_id_a_topic_that_was_made_again_is_not_written_to(
    tmp_path: Path, connect: Callable[[Node], Connection]
) -> None:
    async with open_node(tmp_path) as node:
        client = connect(node)
        old = await new_topic(node, flush="os")
        for _ in range(2):
            assert client.answer(request(batch(), topic_id=old.topic_id), 13).error_code == 0
        topic = node.topics.get("t")
        assert topic is not None
        await node.topics.delete(topic)
        new = await new_topic(node, flush="os")
        late = client.answer(request(batch(), topic_id=old.topic_id), 13)
        assert late.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert values(new) == []
        assert client.answer(request(batch(b"new"), topic_id=new.topic_id), 13).error_code == 0
        assert values(new) == [b"new"]


@pytest.mark.parametrize("acks", [-2, 2])
async def test_what_no_producer_may_ask_for_is_refused_again(
    tmp_path: Path, connect: Callable[[Node], Connection], acks: int
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os")
        client = connect(node)
        for _ in range(3):
            answer = client.answer(request(batch(), acks=acks))
            assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
        assert values(replica) == []


async def test_the_brokers_own_topics_are_not_written_to_by_their_ids_either(
    tmp_path: Path, connect: Callable[[Node], Connection]
) -> None:
    async with open_node(tmp_path) as node:
        own = await node.topics.ensure(NewTopic(name=CONSUMER_OFFSETS, partitions=1))
        client = connect(node)
        for _ in range(2):
            keyed = batch(key=b"k")  # without a key, compaction would refuse it
            answer = client.answer(request(keyed, topic_id=own.id), 13)
            assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_it_waits_for_its_commit(
    tmp_path: Path, connect: Callable[[Node], Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk(monkeypatch)
    async with open_node(tmp_path) as node:
        await new_topic(node)
        client = connect(node)
        client.ask(request(batch(b"a")))
        disk.hold()
        call = client.ask(request(batch(b"b")))
        assert isinstance(call, Call)
        assert not call.is_settled
        assert len(client.decoded) == 1
        disk.release()
        assert client.read(call.parts).base_offset == 1


async def test_its_own_time_out_is_kept(
    tmp_path: Path, connect: Callable[[Node], Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk(monkeypatch)
    async with open_node(tmp_path) as node:
        await new_topic(node)
        client = connect(node)
        client.ask(request(batch(), timeout_ms=1))
        await trio.sleep(0.05)
        disk.hold()
        call = client.ask(request(batch(), timeout_ms=1))
        assert isinstance(call, Call)
        settled = trio.Event()
        call.when_settled = settled.set
        with trio.fail_after(20):
            await settled.wait()
        assert client.read(call.parts).error_code == ErrorCode.REQUEST_TIMED_OUT
        disk.release()


async def test_a_batch_that_is_refused_is_refused_with_the_same_words(
    tmp_path: Path, connect: Callable[[Node], Connection]
) -> None:
    broken = bytearray(batch(b"a"))
    broken[-1] ^= 1
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os")
        refused = connect(node).answer(request(bytes(broken)))
        client = connect(node)
        client.answer(request(batch(b"a")))
        assert client.answer(request(bytes(broken))) == refused
        assert refused.error_code == ErrorCode.CORRUPT_MESSAGE
        assert node.metrics.bad_input[BadInput.CORRUPT_BATCH].value == 2
        assert values(replica) == [b"a"]


async def test_a_topic_that_has_gone_is_unknown(
    tmp_path: Path, connect: Callable[[Node], Connection]
) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node, flush="os")
        client = connect(node)
        client.answer(request(batch()))
        topic = node.topics.get("t")
        assert topic is not None
        await node.topics.delete(topic)
        assert client.answer(request(batch())).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        again = await new_topic(node, flush="os")
        assert client.answer(request(batch(b"new"))).base_offset == 0
        assert values(again) == [b"new"]


async def test_what_is_sent_twice_is_stored_once(
    tmp_path: Path, connect: Callable[[Node], Connection]
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os")
        client = connect(node)
        sent = [batch(b"%d" % n, producer_id=1, producer_epoch=0, base_sequence=n) for n in (0, 1)]
        assert [client.answer(request(each)).base_offset for each in [*sent, *sent]] == [0, 1, 0, 1]
        gap = batch(b"5", producer_id=1, producer_epoch=0, base_sequence=5)
        refusal = client.answer(request(gap))
        assert refusal.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert values(replica) == [b"0", b"1"]


async def test_the_brokers_own_topic_is_refused_each_time(
    tmp_path: Path, connect: Callable[[Node], Connection]
) -> None:
    async with open_node(tmp_path) as node:
        client = connect(node)
        for _ in range(3):
            answer = client.answer(request(batch(), topic="__consumer_offsets"))
            assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_each_version_of_a_connection_is_known_for_itself(
    tmp_path: Path, connect: Callable[[Node], Connection]
) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node, flush="os")
        client = connect(node)
        offsets = [client.answer(request(batch()), v).base_offset for v in (7, 8, 9, 9, 7)]
        assert offsets == [0, 1, 2, 3, 4]
