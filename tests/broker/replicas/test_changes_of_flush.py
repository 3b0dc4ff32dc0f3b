"""A topic's `flush` is changed while it is used: what holds then is what was said last."""

import errno
import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from tests.broker.clusters import wait_until
from tests.broker.handlers.producing import batch, begin, new_topic, request
from tests.broker.nodes import open_node
from tests.descriptors import no_descriptors
from tidemark.broker.node import Node
from tidemark.broker.replicas import checkpoints as checkpoints_module
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.partitions.storage.syncing import NotTaken
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.produce import ProduceResponse

SMALL = "1024"
"""Bytes of a segment: a few batches."""


def fill_a_segment(node: Node, replica: Replica) -> None:
    """So that another one begins, whose name is not on the disk yet. Nothing waits: `flush=os`."""
    files = os.listdir(replica.log.directory)
    while os.listdir(replica.log.directory) == files:
        answer = begin(node, request(batch(bytes(100))))
        assert isinstance(answer, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def change(replica: Replica, *, flush: Literal["commit", "os"]) -> None:
    replica.apply_config(replace(replica.config, flush=flush))


async def test_a_log_is_journaled_once_there_are_descriptors_to_sync_it_with(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os", segment_bytes=SMALL)
        fill_a_segment(node, replica)
        with no_descriptors(), pytest.raises(NotTaken, match="Too many open files"):
            replica.set_flush(syncs=True)
        assert node.disk.error is None
        assert not replica.member.syncs_before_ack
        replica.set_flush(syncs=True)
        assert replica.member.syncs_before_ack


async def test_descriptors_that_run_out_amid_a_change_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """All was synced and recorded; then another segment began."""
    monkeypatch.setattr(checkpoints_module, "RETRY_SECONDS", 0.1)
    set_flush, out = Replica.set_flush, ExitStack()

    def set_flush_without(replica: Replica, *, syncs: bool) -> None:
        if not caplog.messages:
            fill_a_segment(node, replica)
            out.enter_context(no_descriptors())
        set_flush(replica, syncs=syncs)

    monkeypatch.setattr(Replica, "set_flush", set_flush_without)
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os", segment_bytes=SMALL)
        with out:
            change(replica, flush="commit")
            await wait_until(lambda: "Too many open files" in caplog.text)
            assert not replica.member.syncs_before_ack
            assert "what has changed cannot be saved now" in caplog.text
        await wait_until(lambda: replica.member.syncs_before_ack)
        assert node.disk.error is None


async def test_a_sync_that_fails_amid_a_change_ends_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    ends = list[OSError]()
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush="os", segment_bytes=SMALL)
        fill_a_segment(node, replica)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", fail)
            patch.setattr(node.disk, "fail", ends.append)
            replica.set_flush(syncs=True)
        assert [type(error) for error in ends] == [SyncFailed]
        assert not replica.member.syncs_before_ack
        replica.delete()  # its log takes nothing more


@pytest.mark.parametrize("flush", ["commit", "os"])
async def test_a_change_that_is_taken_back_before_it_is_done_is_not_done(
    tmp_path: Path, flush: Literal["commit", "os"]
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, flush=flush)
        before = replica.member.syncs_before_ack
        change(replica, flush="os" if flush == "commit" else "commit")
        change(replica, flush=flush)
        other = await new_topic(node, "other", flush=flush)
        change(other, flush="os" if flush == "commit" else "commit")
        await wait_until(lambda: other.member.syncs_before_ack != before)  # it comes later
        assert replica.member.syncs_before_ack == before
