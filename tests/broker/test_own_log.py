"""What a coordinator may still write: nothing that it decided under another leadership."""

from pathlib import Path

import pytest

from tests.broker.handlers.producing import batch, new_topic
from tests.broker.nodes import open_node
from tidemark.broker.coordinating.own_log import OwnLog, encoded
from tidemark.broker.network.odd_events import LINES_PER_PERIOD
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.replication.outbox import GroupChange
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_offsets import OffsetCommitKey
from tidemark.protocol.messages.stored import encode_record
from tidemark.protocol.types import Epoch


async def test_a_coordinator_of_an_earlier_leadership_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log may have gone on meanwhile, and what it would write rests on what was before."""
    reported: list[tuple[int, ErrorCode]] = []
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        former = OwnLog(
            replica,
            lambda number, error: reported.append((number, error)),
            batch_bytes_max=1000,
        )
        assert former.is_current
        # The lead was lost and won again, and who decides has not been told yet.
        later = Epoch(replica.epoch + 2)
        monkeypatch.setattr(Replica, "epoch", property(lambda _: later))
        assert replica.is_serving
        former.append(0, batch())
        former.flush()
        assert reported == [(0, ErrorCode.NOT_COORDINATOR)]
        assert (replica.log_end, former.is_current) == (0, False)


async def test_a_batch_that_no_follower_could_be_sent_is_not_written(tmp_path: Path) -> None:
    """The state of a group with large members, say. What comes after it is written."""
    reported: list[tuple[int, ErrorCode]] = []
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os")
        large = batch(b"x" * 500)
        log = OwnLog(
            replica,
            lambda number, error: reported.append((number, error)),
            batch_bytes_max=len(large) - 1,
        )
        log.append(0, large)
        log.append(1, batch(b"x" * 499))
        log.flush()
        assert reported == [(0, ErrorCode.UNKNOWN_SERVER_ERROR), (1, ErrorCode.NONE)]
        assert replica.log_end == 1


async def test_what_has_no_bytes_fails_in_its_turn_and_the_rest_is_written(tmp_path: Path) -> None:
    """The name of a group may be longer than a record has a length for."""
    reported: list[tuple[int, ErrorCode]] = []
    key = OffsetCommitKey(group="g" * 40_000, topic="t", partition=0)
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os")
        log = OwnLog(
            replica,
            lambda number, error: reported.append((number, error)),
            batch_bytes_max=1 << 20,
        )
        log.append(0, batch())
        log.append(1, encoded(lambda: encode_record(key, 1)))
        log.append(2, encoded(batch))
        log.flush()
        assert reported == [
            (0, ErrorCode.NONE),
            (1, ErrorCode.UNKNOWN_SERVER_ERROR),
            (2, ErrorCode.NONE),
        ]
        assert replica.log_end == 2


async def test_writes_that_fail_again_and_again_do_not_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os")
        log = OwnLog(replica, lambda *_: None, batch_bytes_max=1)
        for number in range(100):
            log.append(number, batch())
        log.flush()
        said = [each for each in caplog.messages if "a write failed" in each]
        assert len(said) == LINES_PER_PERIOD


@pytest.mark.parametrize("is_given_up", [False, True])
async def test_that_what_was_given_up_fails_is_not_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_given_up: bool
) -> None:
    """A broker that stops has sent away whoever waited for it."""
    reported: list[ErrorCode] = []
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        log = OwnLog(replica, lambda _, error: reported.append(error), batch_bytes_max=1000)
        log.append(0, batch())
        log.flush()
        if is_given_up:
            log.give_up()
        replica.member.fail("it is resigning")
        replica.changed(GroupChange(replica.key, leadership=True))
    assert reported == [ErrorCode.NOT_COORDINATOR]
    said = [each for each in caplog.messages if "a write failed" in each]
    assert len(said) == (0 if is_given_up else 1)
