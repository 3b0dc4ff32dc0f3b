"""A start says so where a listener asks for SASL and there is nobody to be let in."""

import logging
from pathlib import Path

import pytest

from tests.broker.handlers.altering_users import alter, upsertion
from tidemark.broker.config import Address, BrokerSettings, Endpoint, User
from tidemark.broker.server import open_broker

SAYS = "there are no users yet"


def settings(data_dir: Path, protocol: str, *users: User) -> BrokerSettings:
    anywhere = Address("127.0.0.1", 0)
    return BrokerSettings(
        data_dir=data_dir,
        listeners=(Endpoint(protocol, anywhere),),
        peer_listen=anywhere,
        http_listen=None,
        users=users,
    )


async def test_it_is_said_until_there_is_a_user(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with open_broker(settings(tmp_path, "SASL_PLAINTEXT")) as broker:
        assert SAYS in caplog.text
        await alter(broker.node, upsertion("ada"))
    caplog.clear()
    async with open_broker(settings(tmp_path, "SASL_PLAINTEXT")):
        assert SAYS not in caplog.text


@pytest.mark.parametrize("users", [(), (User("ada", "pw"),)])
async def test_it_is_not_said_where_nobody_is_asked_or_somebody_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, users: tuple[User, ...]
) -> None:
    caplog.set_level(logging.WARNING)
    protocol = "SASL_PLAINTEXT" if users else "PLAINTEXT"
    async with open_broker(settings(tmp_path, protocol, *users)):
        assert SAYS not in caplog.text
