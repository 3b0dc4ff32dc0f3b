"""What a coordinator may still write: nothing that it decided under another leadership."""

from pathlib import Path

import pytest

from tests.broker.handlers.producing import batch, new_topic
from tests.broker.nodes import open_node
from tidemark.broker.coordinating.own_log import OwnLog
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import Epoch


async def test_a_coordinator_of_an_earlier_leadership_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log may have gone on meanwhile, and what it would write rests on what was before."""
    reported: list[tuple[int, ErrorCode]] = []
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        former = OwnLog(replica, lambda number, error: reported.append((number, error)))
        assert former.is_current
        # The lead was lost and won again, and who decides has not been told yet.
        later = Epoch(replica.epoch + 2)
        monkeypatch.setattr(Replica, "epoch", property(lambda _: later))
        assert replica.is_serving
        former.append(0, batch())
        former.flush()
        assert reported == [(0, ErrorCode.NOT_COORDINATOR)]
        assert (replica.log_end, former.is_current) == (0, False)
