"""Authentication: the exchanges, their handlers, and a real client against a real broker."""

from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramClient, ScramException
from trio.testing import MockClock

from tests.broker.handlers.asking import ask
from tests.broker.jumping import jumping
from tests.broker.network.logging_in import USERS, session
from tests.broker.nodes import open_node
from tidemark.broker.config import User
from tidemark.broker.handlers import sasl_authenticate, sasl_handshake
from tidemark.broker.metrics import BadInput
from tidemark.broker.network.requests import RequestContext, Session
from tidemark.broker.network.sasl import Credentials, Exchange
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.access.users import UserTable
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tidemark.protocol.messages.sasl_handshake import SaslHandshakeRequest

SCRAM = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


def plain(message: bytes) -> str | None:
    return Credentials(USERS, UserTable()).begin("PLAIN").step(message).user


@pytest.mark.parametrize("message", ["\0ada\0pässword", "ada\0ada\0pässword"])
def test_plain_takes_a_name_and_its_password(message: str) -> None:
    assert plain(message.encode()) == "ada"


@pytest.mark.parametrize(
    "message",
    [
        b"\0ada\0wrong",
        b"\0ada\0b",
        b"\0eve\0b",
        b"\0\0",
        b"bob\0ada\0p\xc3\xa4ssword",
        b"ada\0p\xc3\xa4ssword",
        b"\0ada\0p\xc3\xa4ssword\0",
        b"\xff\0ada\0b",
        b"",
    ],
)
def test_plain_refuses_everything_else_in_the_same_words(message: bytes) -> None:
    with pytest.raises(RequestError) as raised:
        plain(message)
    assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert raised.value.message == "authentication failed: a wrong name or password"


def scram(mechanism: str, name: str, password: str) -> str | None:
    """Who the broker takes the client for, after the client has checked the broker as well."""
    client = ScramClient([mechanism], name, password)
    server = Credentials(USERS, UserTable()).begin(mechanism)
    challenge = server.step(client.get_client_first().encode())
    assert challenge.user is None
    client.set_server_first(challenge.reply.decode())
    proof = server.step(client.get_client_final().encode())
    client.set_server_final(proof.reply.decode())
    return proof.user


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_proves_both_sides_to_each_other(mechanism: str) -> None:
    assert scram(mechanism, "ada", "pässword") == "ada"


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize(("name", "password"), [("ada", "wrong"), ("eve", "b")])
def test_scram_tells_a_wrong_password_like_an_unknown_name(
    mechanism: str, name: str, password: str
) -> None:
    with pytest.raises(RequestError) as raised:
        scram(mechanism, name, password)
    assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("name", ["ada", "eve"])
def test_scram_with_another_nonce_is_not_told_of_a_wrong_password(name: str) -> None:
    server = Credentials(USERS, UserTable()).begin("SCRAM-SHA-256")
    client = ScramClient(SCRAM[:1], name, "x")
    challenge = server.step(client.get_client_first().encode())
    client.set_server_first(challenge.reply.decode())
    # What librdkafka before 2.6.1 does: its own part of the nonce comes twice.
    final = client.get_client_final().replace(",r=", f",r={client.c_nonce}")
    with pytest.raises(RequestError, match=r"nonce of the challenge, as librdkafka before 2\.6\.1"):
        server.step(final.encode())


@pytest.mark.parametrize("name", ["ada", "eve"])
def test_scram_challenges_a_name_with_the_same_salt_each_time(name: str) -> None:
    salts = set()
    for _ in range(2):
        server = Credentials(USERS, UserTable()).begin("SCRAM-SHA-256")
        challenge = server.step(ScramClient(SCRAM[:1], name, "x").get_client_first().encode())
        salts.add(challenge.reply.split(b",s=")[1])
    assert len(salts) == 1


def is_over(server: Exchange, message: bytes) -> bool:
    """Whether a message that proves nothing ended the exchange; no message may do more."""
    try:
        step = server.step(message)
    except RequestError as error:
        return error.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert step.user is None
    return False


@given(st.sampled_from(["PLAIN", *SCRAM]), st.lists(st.binary(), min_size=1, max_size=3))
def test_no_bytes_prove_anything(mechanism: str, messages: list[bytes]) -> None:
    server = Credentials(USERS, UserTable()).begin(mechanism)
    for message in messages:
        if is_over(server, message):
            return


@pytest.mark.parametrize("tampered", ["n,,n=ada,r=", "y,,n=ada,r=x", "p=tls-unique,,n=ada,r=x"])
def test_scram_takes_no_odd_first_message_for_a_proof(tampered: str) -> None:
    is_over(Credentials(USERS, UserTable()).begin("SCRAM-SHA-256"), tampered.encode())


async def handshake(
    node: Node, by: Session, mechanism: str = "PLAIN", *, version: int = 1
) -> tuple[int, list[str]]:
    request = SaslHandshakeRequest(mechanism=mechanism)
    context = RequestContext(version, "test", by)
    response = sasl_handshake.handle(node, request, context)
    return response.error_code, list(response.mechanisms)


async def authenticate(node: Node, by: Session, message: bytes) -> bytes:
    request = SaslAuthenticateRequest(auth_bytes=message)
    return (await sasl_authenticate.handle(node, request, RequestContext(2, "test", by))).auth_bytes


async def test_a_client_is_admitted_once_it_has_proven_who_it_is(tmp_path: Path) -> None:
    async with open_node(tmp_path, users=USERS) as node:
        client = session()
        assert not client.is_admitted
        assert (await handshake(node, client))[0] == ErrorCode.NONE
        assert not client.is_admitted
        await authenticate(node, client, b"\0bob\0b")
        assert (client.is_admitted, client.user) == (True, "bob")
        assert (await handshake(node, client))[0] == ErrorCode.ILLEGAL_SASL_STATE


async def test_an_unknown_mechanism_is_refused_with_those_there_are(tmp_path: Path) -> None:
    async with open_node(tmp_path, users=USERS, sasl_enabled_mechanisms=("PLAIN",)) as node:
        refused = (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN"])
        for mechanism in ("GSSAPI", "SCRAM-SHA-256", "plain", ""):
            assert await handshake(node, session(), mechanism) == refused


async def test_a_handshake_without_frames_to_follow_is_refused(tmp_path: Path) -> None:
    async with open_node(tmp_path, users=USERS) as node:
        code, _ = await handshake(node, session(), version=0)
        assert code == ErrorCode.UNSUPPORTED_VERSION


async def test_where_nothing_is_to_be_proven_a_handshake_is_out_of_place(tmp_path: Path) -> None:
    async with open_node(tmp_path, users=USERS) as node:
        code, _ = await handshake(node, session(requires_sasl=False))
        assert code == ErrorCode.ILLEGAL_SASL_STATE


async def test_authentication_without_a_handshake_is_out_of_place(tmp_path: Path) -> None:
    async with open_node(tmp_path, users=USERS) as node:
        with pytest.raises(RequestError, match="ILLEGAL_SASL_STATE"):
            await authenticate(node, session(), b"\0bob\0b")


async def test_a_failure_is_counted_told_late_and_ends_the_exchange(
    tmp_path: Path, clock: MockClock
) -> None:
    async with open_node(tmp_path, users=USERS) as node:
        client = session()
        await handshake(node, client)
        with jumping(clock):
            before = trio.current_time()
            with pytest.raises(RequestError, match="SASL_AUTHENTICATION_FAILED"):
                await authenticate(node, client, b"\0bob\0wrong")
            assert trio.current_time() >= before + sasl_authenticate.FAILURE_DELAY_SECONDS
        assert node.metrics.bad_input[BadInput.FAILED_AUTHENTICATION].value == 1
        with pytest.raises(RequestError, match="ILLEGAL_SASL_STATE"):
            await authenticate(node, client, b"\0bob\0b")
        assert not client.is_admitted


async def test_two_messages_at_once_cannot_both_be_the_exchange(tmp_path: Path) -> None:
    async with open_node(tmp_path, users=USERS) as node:
        client = session()
        await handshake(node, client, "SCRAM-SHA-256")
        first = ScramClient(["SCRAM-SHA-256"], "bob", "b").get_client_first().encode()
        codes: list[ErrorCode] = []

        async def send() -> None:
            try:
                await authenticate(node, client, first)
                codes.append(ErrorCode.NONE)
            except RequestError as error:
                codes.append(error.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            nursery.start_soon(send)
        assert sorted(codes) == [ErrorCode.NONE, ErrorCode.ILLEGAL_SASL_STATE]


@pytest.mark.parametrize("version", range(2))
async def test_both_responses_travel(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path, users=USERS) as node:
        request = SaslHandshakeRequest(mechanism="PLAIN")
        response = await ask(sasl_handshake.handle, node, request, version)
        assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_client_library_that_refuses_is_not_hidden() -> None:
    """The proof of the broker is checked, too: a broker that does not know the password fails."""
    client = ScramClient(["SCRAM-SHA-256"], "ada", "pässword")
    impostor = Credentials([User("ada", "guess")], UserTable()).begin("SCRAM-SHA-256")
    client.set_server_first(impostor.step(client.get_client_first().encode()).reply.decode())
    with pytest.raises(RequestError):
        impostor.step(client.get_client_final().encode())
    with pytest.raises(ScramException):
        client.set_server_final("v=AAAA")
