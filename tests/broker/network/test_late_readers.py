"""Who reads late what it has asked for holds up nobody else."""

from __future__ import annotations

import socket
from struct import unpack

import pytest

from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages.api_versions import ApiVersionsRequest
from tidemark.testing import open_blocking_cluster

REQUESTS = 20_000
"""Whose answers are more than the kernel takes, and less than a connection may have in memory."""
RECEIVE_BYTES = 64 * 1024
"""Of who reads late. By itself the kernel takes as much as all answers have, on some machines."""
SECONDS_MAX = 20


def request(correlation_id: int) -> bytes:
    return encode_request(ApiVersionsRequest(), 0, correlation_id, "c")


def received(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = client.recv(size - len(data))
        assert part, "the broker hung up"
        data += part
    return data


def answer(client: socket.socket) -> int:
    """The correlation id of the next one."""
    (size,) = unpack(">i", received(client, 4))
    return int.from_bytes(received(client, size)[:4])


def test_others_are_served_while_a_part_of_a_request_waits_behind_unread_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with open_blocking_cluster() as cluster:
        host, _, port = cluster.bootstrap.rpartition(":")
        with socket.socket() as late, socket.socket() as other:
            late.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
            for client in (late, other):
                client.settimeout(SECONDS_MAX)
                client.connect((host, int(port)))
            last = request(REQUESTS)
            late.sendall(b"".join(map(request, range(REQUESTS))) + last[:2])
            for number in range(20):
                other.sendall(request(number))
                assert answer(other) == number
            found = [answer(late) for _ in range(REQUESTS)]
            late.sendall(last[2:])
            assert [*found, answer(late)] == list(range(REQUESTS + 1))
    assert not caplog.messages, "nobody is asked again and again, in a turn without an end"
