"""Produce by idempotent producers: what is new, what came before, and what is out of order."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.handlers.producing import batch, begin, new_topic, produce, request
from tests.broker.held_disk import HeldDisk
from tests.broker.nodes import open_node
from tidemark.broker.network.requests import Pending
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.storage.log import Log
from tidemark.protocol.errors import ErrorCode, RequestError


def idempotent(sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    return batch(
        *[b"s%d" % sequence] * count, producer_id=7, producer_epoch=epoch, base_sequence=sequence
    )


async def test_p8_a_duplicate_is_answered_with_the_original_offset(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        for sequence in range(5):
            await produce(node, request(idempotent(sequence)))
        for sequence in (0, 4, 2):
            again = await produce(node, request(idempotent(sequence)))
            assert (again.error_code, again.base_offset) == (ErrorCode.NONE, sequence)
        assert replica.log_end == 5


async def test_p8_a_gap_and_an_old_epoch_are_refused(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        await produce(node, request(idempotent(0, epoch=1)))
        gap = await produce(node, request(idempotent(5, epoch=1)))
        assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        fenced = await produce(node, request(idempotent(1, epoch=0)))
        assert fenced.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("refuses", "error", "code"),
    [
        (Log.append_run, OSError(errno.ENOSPC, "no room"), ErrorCode.KAFKA_STORAGE_ERROR),
        (
            Replica.check_in_sync,
            RequestError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few"),
            ErrorCode.NOT_ENOUGH_REPLICAS,
        ),
    ],
)
async def test_who_follows_what_the_broker_could_not_take_is_not_out_of_order(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refuses: Callable[..., object],
    error: Exception,
    code: ErrorCode,
) -> None:
    """librdkafka#4953: it would begin a new epoch for all of its partitions."""

    def refuse(*_: object) -> None:
        raise error

    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await produce(node, request(idempotent(0)))
        with monkeypatch.context() as patch:
            owner = Log if refuses is Log.append_run else Replica
            patch.setattr(owner, refuses.__name__, refuse)
            assert (await produce(node, request(idempotent(1)))).error_code == code
        for sequence in (2, 3):
            assert (await produce(node, request(idempotent(sequence)))).error_code == code
        for sequence in (1, 2, 3):
            answer = await produce(node, request(idempotent(sequence)))
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, sequence)
        assert replica.log_end == 4


async def test_a_duplicate_waits_until_its_original_is_committed(
    tmp_path: Path, disk: HeldDisk
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        disk.hold()
        first, again = (begin(node, request(idempotent(0))) for _ in range(2))
        assert isinstance(first, Pending)
        assert isinstance(again, Pending)
        assert replica.log_end == 1
        disk.release()
        assert first.is_complete
        assert again.is_complete


async def test_producers_are_remembered_through_a_restart(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        for sequence in range(3):
            await produce(node, request(idempotent(sequence)))
    async with open_node(tmp_path) as node:
        again = await produce(node, request(idempotent(1)))
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 1)
        following = await produce(node, request(idempotent(3)))
        assert (following.error_code, following.base_offset) == (ErrorCode.NONE, 3)


async def test_a_transaction_is_a_producers(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
        nobodys = batch(is_transactional=True)
        refused = await produce(node, request(nobodys, transactional_id="tx"))
        assert refused.error_code == ErrorCode.INVALID_RECORD
