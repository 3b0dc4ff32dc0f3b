from dataclasses import replace

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.client.scripted_peer import Peer, open_peer
from tidemark.client import open_client
from tidemark.client.addresses import Address
from tidemark.client.blocking.connection import open_connection
from tidemark.client.connection import Connection
from tidemark.client.pool import Pool, open_pool
from tidemark.client.settings import ClientSettings
from tidemark.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidemark.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from tidemark.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

SETTINGS = ClientSettings(request_timeout_seconds=5, connect_timeout_seconds=5)
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


async def beat(connection: Connection) -> int:
    return (await connection.request(BEAT, HeartbeatResponse)).error_code


async def test_answers_go_to_the_requests_they_belong_to() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        headers = [await peer.request() for _ in range(3)]
        for code, header in enumerate(headers):
            await peer.answer(header, HeartbeatResponse(error_code=code))

    async with open_peer(script) as address, open_pool(SETTINGS) as pool:
        connection = await pool.connection(address)
        replies = [await connection.send(BEAT, HeartbeatResponse) for _ in range(3)]
        assert [(await reply.wait()).error_code for reply in reversed(replies)] == [2, 1, 0]


async def test_a_cancelled_request_leaves_the_connection_usable() -> None:
    may_answer = trio.Event()

    async def script(peer: Peer) -> None:
        await peer.greet()
        first = await peer.request()
        await may_answer.wait()
        await peer.answer(first, HeartbeatResponse(error_code=27))
        await peer.answer(await peer.request(), HeartbeatResponse(error_code=25))
        await trio.sleep_forever()

    async with open_peer(script) as address, open_pool(SETTINGS) as pool:
        connection = await pool.connection(address)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat, connection)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        may_answer.set()
        assert await beat(connection) == 25
        assert pool.open_connection(address) is connection


async def test_a_connection_cut_in_the_middle_of_an_answer_fails_all_that_wait() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        header = await peer.request()
        await peer.request()
        await peer.stream.send_all(peer.encoded(header, HeartbeatResponse())[:-2])

    async with open_peer(script) as address, open_pool(SETTINGS) as pool:
        connection = await pool.connection(address)
        replies = [await connection.send(BEAT, HeartbeatResponse) for _ in range(2)]
        for reply in replies:
            with pytest.raises(ConnectionError, match=f"{address}: the broker closed"):
                await reply.wait()
        with pytest.raises(ConnectionError):
            await beat(connection)
        assert await pool.connection(address) is not connection


async def test_an_answer_to_the_wrong_request_closes_the_connection() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        header = await peer.request()
        await peer.answer(header._replace(correlation_id=77), HeartbeatResponse())
        await trio.sleep_forever()

    async with open_peer(script) as address, open_pool(SETTINGS) as pool:
        connection = await pool.connection(address)
        with pytest.raises(ConnectionError, match="request 77 where 1's was due"):
            await beat(connection)


async def test_a_peer_that_speaks_something_else_is_named(autojump_clock: trio.abc.Clock) -> None:
    async def script(peer: Peer) -> None:
        await peer.stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await trio.sleep_forever()

    async with open_peer(script) as address, open_pool(SETTINGS) as pool:
        with pytest.raises(ConnectionError, match=f"{address}: what it sent is not Kafka's"):
            await pool.connection(address)


async def test_a_peer_that_hangs_up_without_a_word_is_doubted() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()

    doubt = (
        "it closed the connection without an answer: is this a port for Kafka's clients, "
        r"and without TLS \(security\.protocol\)\?"
    )
    async with open_peer(script) as address, open_pool(SETTINGS) as pool:
        with pytest.raises(ConnectionError, match=f"{address}: {doubt}"):
            await pool.connection(address)
        with pytest.raises(ConnectionError, match=f"{address}: {doubt}"):
            await trio.to_thread.run_sync(open_connection, address, SETTINGS)


async def test_a_peer_that_hangs_up_later_is_not_doubted() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        header, _ = await peer.receive()
        await peer.answer(header, MetadataResponse(brokers=[], topics=[]))
        await peer.receive()

    async with open_peer(script) as address, open_pool(SETTINGS) as pool:
        connection = await pool.connection(address)
        await connection.request(MetadataRequest(topics=[]), MetadataResponse)
        with pytest.raises(ConnectionError, match=r"the broker closed the connection$"):
            await connection.request(MetadataRequest(topics=[]), MetadataResponse)


async def test_a_peer_that_never_answers_is_given_up_in_time(
    autojump_clock: trio.abc.Clock,
) -> None:
    async def silent(peer: Peer) -> None:
        await trio.sleep_forever()

    async def mute(peer: Peer) -> None:
        await peer.greet()
        await trio.sleep_forever()

    async with open_pool(SETTINGS) as pool:
        async with open_peer(silent) as address:
            with pytest.raises(TimeoutError, match="no answer to ApiVersions in 5 s"):
                await pool.connection(address)
        async with open_peer(mute) as address:
            connection = await pool.connection(address)
            began = trio.current_time()
            with pytest.raises(ConnectionError, match="no answer within 5 s"):
                await beat(connection)
            assert 5 <= trio.current_time() - began <= 10


async def test_nobody_listening_is_one_line_with_the_address() -> None:
    async with open_peer(Peer.greet) as address:
        pass
    async with open_pool(SETTINGS) as pool:
        with pytest.raises(ConnectionError) as caught:
            await pool.connection(address)
    assert str(caught.value) == f"cannot connect to {address}: Connection refused"


async def test_an_address_that_brokers_have_named_is_told_as_theirs() -> None:
    far = Address("127.0.0.1", 1)
    told = r"127\.0\.0\.1:1 \(the broker's advertised\.listeners\): Connection refused"

    async def script(peer: Peer) -> None:
        await peer.greet()
        header = await peer.request()
        broker = MetadataResponseBroker(node_id=1, host=far.host, port=far.port)
        await peer.answer(header, MetadataResponse(brokers=[broker], controller_id=1, topics=[]))
        await peer.receive()

    quick = replace(SETTINGS, retry_timeout_seconds=0.1)
    async with open_peer(script) as near, open_client(str(near), settings=quick) as client:
        with pytest.raises(ConnectionError, match=told):
            await client.admin.create_topic("far", partitions=1)


async def test_a_peer_that_does_not_read_holds_the_next_sender_back() -> None:
    may_read = trio.Event()

    async def script(peer: Peer) -> None:
        await peer.greet()
        await may_read.wait()
        while True:
            await peer.request()

    data = PartitionProduceData(index=0, records=bytes(16 * 1024 * 1024))
    large = ProduceRequest(
        acks=0, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )
    async with open_peer(script) as address, open_pool(SETTINGS) as pool:
        connection = await pool.connection(address)
        await connection.send_unanswered(large)
        with trio.move_on_after(0.05) as scope:
            await connection.send_unanswered(large)
        assert scope.cancelled_caught
        may_read.set()
        await connection.send_unanswered(large)


async def test_those_who_ask_at_once_share_one_connection() -> None:
    accepted = 0

    async def script(peer: Peer) -> None:
        nonlocal accepted
        accepted += 1
        await peer.greet()
        await trio.sleep_forever()

    connections: list[Connection] = []

    async def connect(pool: Pool) -> None:
        connections.append(await pool.connection(address))

    async with open_peer(script) as address, open_pool(SETTINGS) as pool:
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(connect, pool)
        assert len(set(connections)) == accepted == 1
