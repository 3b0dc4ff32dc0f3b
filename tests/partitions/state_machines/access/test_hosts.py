"""An address is written in one way, so that what is denied to it is denied."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.state_machines.access.hosts import host_of


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("0000:0000::0001", "::1"),
        ("FE80::ABCD", "fe80::abcd"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::FFFF:0a00:0001", "10.0.0.1"),
    ],
)
def test_the_forms_of_an_address_are_one_host(written: str, host: str) -> None:
    assert host_of(written) == host


@given(st.ip_addresses())
def test_a_host_is_written_as_it_is(address: IPv4Address | IPv6Address) -> None:
    host = host_of(str(address))
    assert host_of(host) == host
    if isinstance(address, IPv6Address):
        assert host_of(address.exploded) == host_of(address.exploded.upper()) == host


@pytest.mark.parametrize(
    "written",
    ["", "*", "localhost", "10.0.0", "10.0.0.01", "10.0.0.0/8", " 10.0.0.1", "::1%lo", "::1\n"],
)
def test_what_no_connection_comes_from_is_no_host(written: str) -> None:
    with pytest.raises(ValueError, match=r"address|zone"):
        host_of(written)
