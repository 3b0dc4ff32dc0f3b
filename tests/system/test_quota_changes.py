"""Quotas that change while a client is held back for them."""

from tests.system.attacks import Peer, batch, production
from tidemark.client.blocking import open_client
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages.produce import ProduceRequest, ProduceResponse
from tidemark.testing.process import BrokerProcess

DAY_MS = 24 * 3600 * 1000


def ask(peer: Peer, request: ProduceRequest) -> ProduceResponse:
    peer.send(encode_request(request, 9, 7, "held"))
    return peer.read(request, 9, ProduceResponse)


def test_who_is_held_back_for_days_goes_on_once_the_quota_is_gone(
    victim: BrokerProcess, topic: str
) -> None:
    """It was a mistake, say."""
    with open_client(victim.bootstrap) as client, Peer(victim.bootstrap) as peer:
        peer.create_topic(topic)
        quota = {"producer_byte_rate": 1.0}
        client.run(lambda: client.admin.alter_quotas(client_id="held", set=quota))
        try:
            over = ask(peer, production(topic, batch(bytes(500_000))))
            assert over.throttle_time_ms > DAY_MS
        finally:
            client.run(lambda: client.admin.alter_quotas(client_id="held", remove=list(quota)))
        free = ask(peer, production(topic, batch(b"next")))
        assert free.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert free.throttle_time_ms == 0
