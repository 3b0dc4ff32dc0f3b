"""What a test of brokers' networks may be run by: sockets as they are, or TLS."""

from __future__ import annotations

import pytest

from tests.broker.peers.brokers import PLAIN, TLS, Wire


@pytest.fixture(params=[PLAIN, TLS], ids=["plain", "tls"])
def wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wire, "settings", request.param)
