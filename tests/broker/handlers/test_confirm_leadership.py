"""ConfirmLeadership of more partitions than are asked at once."""

from pathlib import Path

import pytest

from tests.broker.handlers.asking import ask, wait
from tests.broker.nodes import context, open_node
from tidemark.broker import steps
from tidemark.broker.handlers import confirm_leadership
from tidemark.broker.metadata.topic import NewTopic
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.confirm_leadership import ConfirmLeadershipRequest, ConfirmTopic


def asking(*partitions: int, timeout_ms: int = 20_000) -> ConfirmLeadershipRequest:
    topic = ConfirmTopic(topic="t", partitions=partitions)
    return ConfirmLeadershipRequest(topics=[topic], timeout_ms=timeout_ms)


@pytest.mark.parametrize("at_once", [1, 2, 1000])
async def test_all_are_answered_in_the_requests_order(
    tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_ELEMENTS_AT_ONCE", at_once)
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="t", partitions=4))
        response = await ask(confirm_leadership.handle, node, asking(3, 9, 0, 0), 0)
        (topic,) = response.topics
        assert [
            (each.partition, each.error_code, each.high_watermark) for each in topic.partitions
        ] == [
            (3, ErrorCode.NONE, 0),
            (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            (0, ErrorCode.NONE, 0),
            (0, ErrorCode.NONE, 0),
        ]


async def test_what_was_not_asked_when_time_is_up_is_answered_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_ELEMENTS_AT_ONCE", 1)
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="t", partitions=3))
        pending = confirm_leadership.handle(node, asking(0, 1, 2, timeout_ms=0), context(0))
        (topic,) = (await wait(pending)).topics
        assert [each.error_code for each in topic.partitions] == [
            ErrorCode.NONE,
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.REQUEST_TIMED_OUT,
        ]


async def test_who_has_gone_is_asked_for_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_ELEMENTS_AT_ONCE", 1)
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="t", partitions=3))
        before = len(node.timers)
        pending = confirm_leadership.handle(node, asking(0, 1, 2), context(0))
        assert len(node.timers) > before
        pending.abandon()
        assert len(node.timers) == before
