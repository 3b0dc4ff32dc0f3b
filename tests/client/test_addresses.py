from typing import Any

import pytest

from tidemark.client.addresses import Address, parse_bootstrap
from tidemark.protocol.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9093", [("localhost", 9093)]),
        ("localhost", [("localhost", 9092)]),
        ("a:1, b:2,c", [("a", 1), ("b", 2), ("c", 9092)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
        ("fe80::1", [("fe80::1", 9092)]),
    ],
)
def test_addresses_as_people_write_them(text: str, addresses: list[tuple[str, int]]) -> None:
    assert list(parse_bootstrap(text)) == addresses


@pytest.mark.parametrize("text", ["", " , ", ":9092", "a:port", "a:0", "a:70000", "[::1]9", "a:٣"])
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match="address"):
        parse_bootstrap(text)


def test_an_ipv6_address_is_shown_in_brackets() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("host", 1)) == "host:1"


@pytest.mark.parametrize("given", [None, 5, ["a:1", 5]])
def test_what_is_no_text_is_refused_by_what_it_is(given: Any) -> None:
    with pytest.raises(ConfigError, match="is no bootstrap address: give it as a str, host:port"):
        parse_bootstrap(given)


def test_a_list_is_taken_as_well() -> None:
    assert parse_bootstrap(["a:1", "b"]) == (Address("a", 1), Address("b", 9092))
