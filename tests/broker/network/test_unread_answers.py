"""Answers that clients ask for and do not read: what they take together, and who has to go."""

import attrs
import trio
from trio.testing import MockClock

from tests.broker.network.serving import SETTINGS, Client, Serving, open_serving, request
from tidemark.broker.metrics import ConnectionEnd
from tidemark.broker.network.unread_answers import UNCOUNTED_BYTES

BYTES_MAX = 100_000
ANSWER_BYTES = 14
SMALL_BUFFERS = attrs.evolve(
    SETTINGS, queued_max_response_bytes=BYTES_MAX, socket_send_buffer_bytes=8_192
)
ASKED = 20_000


async def _until_nothing_more_is_served(serving: Serving) -> None:
    served = -1
    while served < len(serving.script.seen):
        served = len(serving.script.seen)
        await trio.sleep(0.1)


async def _read_all(client: Client, count: int) -> None:
    assert [await client.read_number() for _ in range(count)] == list(range(count))


async def test_many_that_do_not_read_take_no_more_together_than_there_is() -> None:
    async with open_serving(SMALL_BUFFERS) as serving, trio.open_nursery() as nursery:
        unread = serving.connections.unread
        slow = [await serving.connect(receive_buffer_bytes=8_192) for _ in range(10)]
        for client in slow:
            nursery.start_soon(client.send, b"".join(request("echo", n) for n in range(ASKED)))
        await _until_nothing_more_is_served(serving)
        assert unread.is_full
        # What one turn adds to it is cut off where the requests of its buffer end.
        assert unread.size_bytes < BYTES_MAX + len(slow) * 2 * UNCOUNTED_BYTES
        assert len(serving.script.seen) < len(slow) * ASKED / 4
        other = await serving.connect()
        await other.ask("echo", 1)
        assert await other.read_number() == 1
        for client in slow:
            nursery.start_soon(_read_all, client, ASKED)
    assert unread.size_bytes == 0
    assert len(serving.script.seen) == len(slow) * ASKED + 1


async def test_while_it_is_used_up_who_does_not_read_has_to_go(autojump_clock: MockClock) -> None:
    async with open_serving(SMALL_BUFFERS) as serving, trio.open_nursery() as nursery:
        stalled = await serving.connect(receive_buffer_bytes=8_192)
        nursery.start_soon(_send_and_be_closed, stalled, ASKED)
        reading = await serving.connect()
        for round_number in range(30):
            await trio.sleep(1)
            await reading.ask("echo", round_number)
            assert await reading.read_number() == round_number
        assert serving.metrics.connections_closed[ConnectionEnd.SLOW].value == 1
        assert serving.connections.unread.size_bytes == 0


async def _send_and_be_closed(client: Client, count: int) -> None:
    try:
        await client.send(b"".join(request("echo", n) for n in range(count)))
    except trio.BrokenResourceError:
        return


async def test_who_does_not_read_while_there_is_room_may_stay(autojump_clock: MockClock) -> None:
    settings = attrs.evolve(SMALL_BUFFERS, queued_max_response_bytes=10_000_000)
    async with open_serving(settings) as serving, trio.open_nursery() as nursery:
        slow = await serving.connect(receive_buffer_bytes=8_192)
        nursery.start_soon(slow.send, b"".join(request("echo", n) for n in range(ASKED)))
        for _ in range(30):
            await trio.sleep(1)
        assert serving.connections.unread.size_bytes > UNCOUNTED_BYTES
        await _read_all(slow, ASKED)


async def test_answers_that_wait_for_the_one_before_them_count_too() -> None:
    settings = attrs.evolve(
        SETTINGS, connection_requests_max=10_000, connection_response_max_bytes=1024
    )
    async with open_serving(settings) as serving:
        client = await serving.connect()
        await client.ask("park", 0)
        await client.send(b"".join(request("echo", n) for n in range(1, 500)))
        await _until_nothing_more_is_served(serving)
        assert len(serving.script.seen) * ANSWER_BYTES < 1024 + 2 * ANSWER_BYTES
        serving.script.answer(0)
        await _read_all(client, 500)
