"""Who is refused tens of thousands of things at once does not keep the others waiting."""

from typing import Any

import pytest
import trio

from tests.broker.access.asked import build, codes
from tests.broker.access.conftest import Guarded
from tidemark.protocol.registry import APIS

NAMES = [f"topic-{number}" for number in range(10_000)]
AT_ONCE_MAX = 3_000
"""Three times what is done in one go: trio takes tasks that can run in any order."""
REQUESTS: dict[int, dict[str, Any]] = {  # Any: fields
    2: {"topics": [{"name": name, "partitions": []} for name in NAMES]},
    3: {"topics": [{"name": name} for name in NAMES]},
    15: {"groups": NAMES},
    19: {
        "topics": [{"name": each, "num_partitions": 1, "replication_factor": 1} for each in NAMES],
        "timeout_ms": 1_000,
    },
    20: {"topics": [{"name": name} for name in NAMES], "timeout_ms": 1_000},
    32: {"resources": [{"resource_type": 2, "resource_name": name} for name in NAMES]},
}


@pytest.mark.parametrize("key", REQUESTS)
async def test_others_have_their_turn_in_between(
    guard: Guarded, monkeypatch: pytest.MonkeyPatch, key: int
) -> None:
    asked, most, over = 0, 0, trio.Event()

    def count(_: Exception) -> None:
        nonlocal asked
        asked += 1

    async def others() -> None:
        nonlocal asked, most
        while not over.is_set():
            most, asked = max(most, asked), 0
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(guard.node.access, "on_refused", count)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        request = build(APIS[key].request, REQUESTS[key])
        answer = await guard.ask("alice", request, APIS[key].max_version)
        most = max(most, asked)
        over.set()
    assert sum(map(bool, codes(answer))) in (0, len(NAMES))
    assert 0 < most <= AT_ONCE_MAX
