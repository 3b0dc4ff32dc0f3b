"""How ACLs write the addresses that somebody may come from."""


def host_of(address: str) -> str:
    """The one way in which an address is written here. Raises `ValueError` if it is none.

    Addresses are compared as text, and those of IPv6 have many forms: what is denied to
    `0:0:0:0:0:0:0:1` is denied to `::1`. An IPv4 address is the same one where IPv6 wraps it. One
    with a zone is refused: a connection does not tell it, so an ACL with it would be of nobody.
    """
    # Here, because a broker without ACLs does not need it.
    from ipaddress import IPv6Address, ip_address

    parsed = ip_address(address)
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.scope_id is not None:
        raise ValueError(f"{address[:100]!r} has a zone")
    return str(parsed.ipv4_mapped or parsed)
