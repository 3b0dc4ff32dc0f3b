"""What a client is told that cannot authenticate; that it can is shown in `tests/clients`."""

import pytest

from tidemark.client import ClientSettings, ErrorCode, RequestError, Sasl
from tidemark.client.blocking import connect, open_client
from tidemark.client.security.sasl import authenticate
from tidemark.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tidemark.testing import BlockingCluster

ADA = Sasl("PLAIN", "ada", "secret")


def test_a_listener_that_asks_for_no_password_says_so(tidemark_session: BlockingCluster) -> None:
    host, _, port = tidemark_session.bootstrap.rpartition(":")
    settings = ClientSettings(sasl=ADA)
    with (
        pytest.raises(RequestError, match="asks for no password: leave SASL out") as caught,
        connect(host, int(port), settings),
    ):
        pass
    assert caught.value.code is ErrorCode.ILLEGAL_SASL_STATE
    with (
        pytest.raises(RequestError, match="asks for no password"),
        open_client(tidemark_session.bootstrap, settings=settings),
    ):
        pass


def test_a_mechanism_that_the_broker_has_not_is_told_with_those_it_has() -> None:
    steps = authenticate(ADA)
    next(steps)
    answer = SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=("SCRAM-SHA-512",)
    )
    with pytest.raises(RequestError, match="does not take PLAIN; it takes SCRAM-SHA-512"):
        steps.send(answer)
