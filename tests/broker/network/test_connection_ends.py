"""What goes wrong on a connection: what is answered, what ends it, and that no other notices."""

import struct

import attrs
import pytest

from tests.broker.network.serving import HEARTBEAT, SETTINGS, encoded, open_serving, request, settle
from tidemark.broker.config import Address, Endpoint
from tidemark.broker.metrics import BadInput, ConnectionEnd
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import decode_response
from tidemark.protocol.messages.api_versions import ApiVersionsResponse
from tidemark.protocol.messages.heartbeat import HeartbeatResponse
from tidemark.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tidemark.protocol.registry import API_VERSIONS_KEY, APIS


async def test_what_a_client_waited_for_is_given_up_when_it_goes() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.ask("park", 7)
        await settle()
        session = serving.script.session
        assert session is not None
        was_over = session.is_over
        await client.stream.aclose()
        await settle()
        assert (was_over, session.is_over) == (False, True)
        assert serving.script.abandoned == [7]
        assert serving.metrics.connections == 0
        serving.script.answer(7)


async def test_a_refusal_is_answered_with_its_code() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.ask("refuse")
        assert await client.read_error() is ErrorCode.REBALANCE_IN_PROGRESS
        await client.ask("echo", 2)
        assert await client.read_number() == 2
        assert serving.metrics.api(HEARTBEAT).errors.value == 1


async def test_a_handler_that_fails_is_answered_and_nobody_else_notices() -> None:
    async with open_serving(SETTINGS) as serving:
        client, other = await serving.connect(), await serving.connect()
        await client.ask("bug")
        assert await client.read_error() is ErrorCode.UNKNOWN_SERVER_ERROR
        for each in (client, other):
            await each.ask("echo", 3)
            assert await each.read_number() == 3


async def test_who_wakes_a_request_does_not_hear_of_its_failure() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.ask("park", 7)
        await client.ask("echo", 8)
        await settle()
        ((_, pending),) = serving.script.parked
        pending.try_complete(lambda: None)
        assert not pending.is_complete
        pending.try_complete(lambda: HeartbeatResponse(throttle_time_ms=1 // 0))
        assert await client.read_error() is ErrorCode.UNKNOWN_SERVER_ERROR
        assert await client.read_number() == 8


async def test_an_answer_that_cannot_be_encoded_ends_its_connection_and_no_other() -> None:
    async with open_serving(SETTINGS) as serving:
        client, other = await serving.connect(), await serving.connect()
        await client.ask("nonsense")
        assert await client.is_closed()
        await other.ask("echo", 3)
        assert await other.read_number() == 3


async def test_a_handler_that_waits_is_answered_in_its_turn_and_may_fail() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.send(encoded(ListGroupsRequest(), 3))
        await client.send(encoded(ListGroupsRequest(states_filter=["fail"]), 4))
        await client.ask("echo", 9)
        codes = []
        for version in (3, 4):
            answer = decode_response(APIS[16], version, await client.read_frame())[1]
            assert isinstance(answer, ListGroupsResponse)
            codes.append(answer.error_code)
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR]
        assert await client.read_number() == 9


async def test_p3_a_request_that_cannot_be_answered_ends_its_connection_and_no_other() -> None:
    async with open_serving(SETTINGS) as serving:
        client, other = await serving.connect(), await serving.connect()
        await client.ask("hang up")
        assert await client.is_closed()
        await other.ask("echo", 4)
        assert await other.read_number() == 4


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (struct.pack(">i", -1), BadInput.FRAME_TOO_LARGE),
        (struct.pack(">i", 2**31 - 1), BadInput.FRAME_TOO_LARGE),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", BadInput.FRAME_TOO_LARGE),
        (b"GET / HTTP/1.1\r\n\r\n", BadInput.FRAME_TOO_LARGE),
        (struct.pack(">i", 3) + b"abc", BadInput.MALFORMED_MESSAGE),
        (struct.pack(">ihhih", 10, 999, 0, 1, -1), BadInput.UNSUPPORTED_VERSION),
        (struct.pack(">ihhih", 10, HEARTBEAT, 99, 1, -1), BadInput.UNSUPPORTED_VERSION),
        # Spoken by the protocol, and without a handler here.
        (struct.pack(">ihhih", 10, 0, 7, 1, -1), BadInput.UNSUPPORTED_VERSION),
        (request("echo")[:4] + b"\xff" * (len(request("echo")) - 4), BadInput.UNSUPPORTED_VERSION),
        (struct.pack(">ihhihh", 12, HEARTBEAT, 3, 1, -1, 20_000), BadInput.MALFORMED_MESSAGE),
    ],
    ids=[
        "negative length",
        "2 GiB",
        "TLS hello",
        "HTTP GET",
        "short frame",
        "unknown API",
        "version too new",
        "API not served",
        "garbage",
        "string beyond its frame",
    ],
)
async def test_a12_bad_bytes_end_the_connection_without_answer_and_are_counted(
    data: bytes, kind: BadInput
) -> None:
    async with open_serving(SETTINGS) as serving:
        other = await serving.connect()
        client = await serving.connect()
        await client.send(data)
        assert await client.is_closed()
        assert serving.metrics.bad_input[kind].value == 1
        assert serving.metrics.connections_closed[ConnectionEnd.BAD_INPUT].value == 1
        await other.ask("echo", 1)
        assert await other.read_number() == 1


async def test_a3_api_versions_that_is_too_new_is_answered_in_version_0_with_its_range() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.send(struct.pack(">ihhih", 13, API_VERSIONS_KEY, 77, 5, -1) + b"any")
        correlation_id, answer = decode_response(
            APIS[API_VERSIONS_KEY], 0, await client.read_frame()
        )
        assert correlation_id == 5
        assert isinstance(answer, ApiVersionsResponse)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        own = APIS[API_VERSIONS_KEY]
        assert [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys] == [
            (own.key, own.min_version, own.max_version)
        ]
        await client.ask("echo", 2)
        assert await client.read_number() == 2


async def test_a_listener_with_sasl_serves_nobody_who_has_not_proven_who_it_is() -> None:
    listeners = (Endpoint("SASL_PLAINTEXT", Address("127.0.0.1", 0)),)
    async with open_serving(attrs.evolve(SETTINGS, listeners=listeners)) as serving:
        client = await serving.connect()
        await client.send(struct.pack(">ihhih", 10, API_VERSIONS_KEY, 0, 1, -1))
        await client.read_frame()
        await client.ask("echo")
        assert await client.is_closed()
        assert serving.metrics.bad_input[BadInput.NOT_AUTHENTICATED].value == 1
