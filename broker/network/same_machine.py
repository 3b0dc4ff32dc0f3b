"""Connections that do not leave the machine: no network is between their ends.

A congestion control finds out what a network can take. Some that a host may have for all its
connections (BBR) pace what is sent by a timer for each packet, also where memory is all that is
between the two: then a timer's interrupt and a waking stand between pieces of 64 KB. Brokers of
one machine are in order (`docs/decisions/0012-more-cores.md`), and readers beside their broker are
what every test is, so what stays here goes without.
"""

import socket
from contextlib import suppress
from typing import Final

# Every Linux has it, and lets everybody choose it. It does not pace.
_UNPACED: Final = b"reno"


def is_same_machine(own_host: str, peer_host: str) -> bool:
    """Whether a connection between these addresses stays on this machine.

    Who connects to one of its own addresses has that address itself, and 127.0.0.0/8 leads nowhere
    else.
    """
    return own_host == peer_host or peer_host.startswith("127.")


def send_unpaced_if_near(connected: socket.socket) -> None:
    """Have what is sent to this machine not be paced; what leaves it, as the host has it.

    Of a connection that has failed already nothing is asked.
    """
    # Or the choice is not offered: a sandbox may emulate sockets and leave it out.
    with suppress(OSError):
        own, peer = connected.getsockname()[0], connected.getpeername()[0]
        if is_same_machine(own, peer):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _UNPACED)
