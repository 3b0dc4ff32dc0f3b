"""Where a broker says that it is, to who starts it."""

from pathlib import Path

import pytest

from tidemark.broker.config import Address, BrokerSettings, Endpoint
from tidemark.broker.server import open_broker


@pytest.mark.parametrize(
    ("everywhere", "here"), [("", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "::1")]
)
async def test_all_addresses_on_every_interface_are_this_machines_own(
    tmp_path: Path, everywhere: str, here: str
) -> None:
    listen = Address(everywhere, 0)
    settings = BrokerSettings(
        data_dir=tmp_path,
        listeners=(Endpoint("PLAINTEXT", listen), Endpoint("OTHER", listen)),
        listener_security_protocol_map=(("OTHER", "PLAINTEXT"),),
        peer_listen=Address("127.0.0.1", 0),
        http_listen=listen,
    )
    async with open_broker(settings) as broker:
        assert broker.http_address is not None
        shown = [broker.kafka_address, *broker.listeners.values(), broker.http_address]
    assert {each.host for each in shown} == {here}
    assert all(each.port for each in shown)
