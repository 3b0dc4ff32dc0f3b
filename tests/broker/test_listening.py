"""Addresses that a broker cannot have, and what it says of them."""

import errno
import socket
from collections.abc import Iterator

import pytest

from tests.descriptors import no_descriptors
from tidemark.broker.config import BrokerSettings, load_settings
from tidemark.broker.listening import open_listening


@pytest.fixture
def taken() -> Iterator[str]:
    """An address that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def settings(**addresses: str) -> BrokerSettings:
    free = {"listen": "127.0.0.1:0", "peer_listen": "127.0.0.1:0", "http": "127.0.0.1:0"}
    return load_settings(options={**free, **addresses}, environment={}, file=None).settings


def test_one_that_is_in_use_is_named_with_its_option(taken: str) -> None:
    with (
        pytest.raises(OSError, match="choose another with --http") as problem,
        open_listening(settings(http=taken)),
    ):
        pass
    assert problem.value.errno == errno.EADDRINUSE
    assert str(problem.value.strerror).startswith(f"{taken} is in use, perhaps by another broker")


def test_all_that_are_in_use_are_named_at_once(taken: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = f"127.0.0.1:{listener.getsockname()[1]}"
        with (
            pytest.raises(OSError, match=f"^.*{taken} and {other} are in use") as problem,
            open_listening(settings(listen=taken, peer_listen=other)),
        ):
            pass
    assert str(problem.value.strerror).endswith("choose others with --listen and --peer-listen")


def test_an_address_of_another_machine_is_not_called_in_use() -> None:
    with (
        pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1:1: .* another with --listen"),
        open_listening(settings(listen="192.0.2.1:1")),
    ):
        pass


def test_without_descriptors_no_other_address_is_recommended() -> None:
    with (
        no_descriptors(),
        pytest.raises(OSError, match=r"Too many open files$"),
        open_listening(settings()),
    ):
        pass


def test_what_was_bound_is_free_again_after_a_clash(taken: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = f"127.0.0.1:{other.getsockname()[1]}"
    with pytest.raises(OSError, match="in use"), open_listening(settings(listen=free, http=taken)):
        pass
    with open_listening(settings(listen=free)) as listening:
        assert str(listening.clients[0].address) == free
