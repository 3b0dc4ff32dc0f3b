"""Brokers in the test's process, and what a child that is forked off it gets of them: nothing.

The brokers' thread does not live on in the child, but copies of their descriptors do, if nobody
does anything about them. As long as the child lives, say a worker of `multiprocessing`, a broker
that has been killed would still hold its port and its directory's lock, its clients would not be
told, and it could not be started again.
"""

import os
import shutil
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from tidemark.testing.hosted_broker import HostedBroker

_DESCRIPTORS: Final = Path("/proc/self/fd")
_hosted: Final[dict[object, Collection[HostedBroker]]] = {}
"""Who is to be let go: a global, as what is registered for forks is."""


@contextmanager
def let_go_by_children(hosted: Collection[HostedBroker]) -> Iterator[None]:
    """While this block lasts, forked children let go of what these brokers have open."""
    key = object()
    _hosted[key] = hosted
    try:
        yield
    finally:
        del _hosted[key]


@contextmanager
def own_folder() -> Iterator[Path]:
    """A temporary folder that goes with the block, and not with a child that ends in it."""
    process, folder = os.getpid(), Path(mkdtemp(prefix="tidemark-"))
    try:
        yield folder
    finally:
        if os.getpid() == process:
            shutil.rmtree(folder)


def _let_go() -> None:
    """Put nothing in the place of each descriptor: its number stays taken, for an object of the
    parent's that closes it later would else close something of the child's."""
    hosted = [each for brokers in _hosted.values() for each in brokers]
    if not hosted:
        return
    folders = tuple(f"{each.data_dir.resolve()}/" for each in hosted)
    ports = {port for each in hosted for port in each.ports}
    peer_ports = {each.running.peer_address.port for each in hosted if each.running is not None}
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        for name in os.listdir(_DESCRIPTORS):
            with suppress(OSError):  # the listing's own is closed by now
                path = os.readlink(_DESCRIPTORS / name)
                if path.startswith("socket:"):
                    is_theirs = _is_of(int(name), ports, peer_ports)
                else:
                    is_theirs = path.startswith(folders) and not _is_sqlite(path)
                if is_theirs:
                    os.dup2(nothing, int(name), inheritable=False)
    finally:
        os.close(nothing)


def _is_sqlite(path: str) -> bool:
    """Its locks stay the parent's by themselves. SQLite finds that out when the child ends, and
    leaves its files alone; with nothing to lock, it would tidy up."""
    return Path(path).name.startswith("state.db")


def _is_of(descriptor: int, ports: Collection[int], peer_ports: Collection[int]) -> bool:
    """Whether it is a listener's, what that accepted, or a connection to another broker."""
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        if copy.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        if copy.getsockname()[1] in ports:
            return True
        return copy.getpeername()[1] in peer_ports


os.register_at_fork(after_in_child=_let_go)
