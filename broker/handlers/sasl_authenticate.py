"""SaslAuthenticate: one message of the exchange that SaslHandshake began."""

from typing import Final

import trio

from tidemark.broker.metrics import BadInput
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.network.sasl import failed
from tidemark.broker.node import Node
from tidemark.broker.threads import run_in_thread
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)

FAILURE_DELAY_SECONDS: Final = 0.1
"""Before a failure is told, so that guessing is slow; it is what Kafka waits."""
MESSAGE_BYTES_MAX: Final = 8 * 1024
"""Names and passwords are short, and a name is prepared character by character."""


async def handle(
    node: Node, request: SaslAuthenticateRequest, context: RequestContext
) -> SaslAuthenticateResponse:
    session = context.session
    # Taken out while it works, so that two messages at once cannot be one exchange's.
    exchange, session.exchange = session.exchange, None
    if exchange is None:
        raise RequestError(
            ErrorCode.ILLEGAL_SASL_STATE, "SaslHandshake comes first, and chooses a mechanism"
        )
    try:
        if len(request.auth_bytes) > MESSAGE_BYTES_MAX:
            raise failed()
        step = await run_in_thread(
            exchange.step, bytes(request.auth_bytes), limiter=node.authenticating
        )
    except RequestError:
        node.metrics.bad_input[BadInput.FAILED_AUTHENTICATION].inc()
        await trio.sleep(FAILURE_DELAY_SECONDS)
        raise
    if step.user is None:
        session.exchange = exchange
    session.user = step.user
    if step.user is not None:
        session.on_admitted()
    # A lifetime of 0: it holds as long as the connection.
    return SaslAuthenticateResponse(auth_bytes=step.reply, error_message=None)
