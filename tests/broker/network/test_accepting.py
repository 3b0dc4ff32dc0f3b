"""What the operating system may answer to `accept` does not end a broker."""

import errno
import socket
from dataclasses import replace

import pytest
import trio

from tidemark.client import open_client
from tidemark.testing import Cluster, open_cluster


class Listening(socket.socket):
    """A listener whose `accept` fails as told, and then has nobody waiting."""

    def __init__(self, errors: list[int]) -> None:
        super().__init__()
        self.errors = errors

    def accept(self) -> tuple[socket.socket, object]:
        if not self.errors:
            raise BlockingIOError
        raise OSError(self.errors.pop(0), "as told")


def accept(cluster: Cluster, errors: list[int]) -> None:
    accepting = cluster.broker.connections._accepting
    (bound,) = accepting._listeners
    with Listening(errors) as listening:
        accepting._accept(replace(bound, socket=listening))
        assert not listening.errors


async def check_served(cluster: Cluster) -> None:
    """To be connected is not enough: the operating system takes connections for a broker."""
    with trio.fail_after(20):
        async with open_client(cluster.bootstrap) as client:
            assert await client.admin.list_topics() == []


@pytest.mark.parametrize("error", [errno.EPROTO, errno.EPERM, errno.EHOSTUNREACH])
async def test_a_connection_lost_before_it_was_taken_is_passed_over(error: int) -> None:
    async with open_cluster() as cluster:
        accept(cluster, [error, error])
        await check_served(cluster)


async def test_without_descriptors_a_connection_is_refused_again_and_again() -> None:
    async with open_cluster() as cluster:
        for _ in range(3):
            accept(cluster, [errno.EMFILE, errno.EMFILE])
        await check_served(cluster)
