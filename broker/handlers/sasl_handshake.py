"""SaslHandshake: the client chooses how it will prove who it is."""

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.network.sasl import Credentials
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

_WITH_AUTHENTICATE = 1


def handle(
    node: Node, request: SaslHandshakeRequest, context: RequestContext
) -> SaslHandshakeResponse:
    """Begins an exchange. In version 0 its bytes would follow without Kafka's frames: refused."""
    session, mechanisms = context.session, node.settings.sasl_enabled_mechanisms
    if not session.requires_sasl or session.user is not None:
        code = ErrorCode.ILLEGAL_SASL_STATE
    elif context.api_version < _WITH_AUTHENTICATE:
        code = ErrorCode.UNSUPPORTED_VERSION
    elif request.mechanism not in mechanisms:
        code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    else:
        code = ErrorCode.NONE
        session.exchange = Credentials(node.settings.users, node.cluster.state.users).begin(
            request.mechanism
        )
    return SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)
