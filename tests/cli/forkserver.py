"""Runs `tidemark` command lines in forks of one process that has imported everything.

A page of examples starts fifty commands, and three quarters of each one's time is imports. The
stand-in for the command (`CLIENT`) passes its arguments, directory and standard streams over a Unix
socket; a fork takes them over, runs the command as the console script would, and its exit status
goes back.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tidemark.cli.main import NOUNS, run

CLIENT = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(call).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(call)
    sys.exit(server.recv(1)[0])
"""


@contextmanager
def open_forkserver() -> Iterator[Path]:
    """A `tidemark` that is quick to start, in a directory of its own."""
    with TemporaryDirectory(prefix="tidemark-") as directory:
        address = f"{directory}/socket"
        command = Path(directory, "bin", "tidemark")
        command.parent.mkdir()
        command.write_text(CLIENT.format(python=sys.executable, address=address))
        command.chmod(0o755)
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.forkserver", address],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
        )
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        try:
            yield command
        finally:
            server.kill()
            server.communicate()


def serve(address: str) -> None:
    """Take calls at `address` for ever; say `ready` when it can."""
    for noun in NOUNS.values():
        import_module(noun.where.partition(":")[0])
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        # A grandchild answers, so that nobody has to be waited for but the child that is gone.
        child = os.fork()
        if child:
            connection.close()
            os.waitpid(child, 0)
        elif os.fork():
            os._exit(0)
        else:
            listener.close()
            answer(connection)


def answer(connection: socket.socket) -> None:
    """Run the call that comes over the connection in this process, which ends with it."""
    length, streams, _, _ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as stream:
        arguments, directory, environment = json.loads(stream.read(int.from_bytes(length, "big")))
    for number, stream_fd in enumerate(streams):
        os.dup2(stream_fd, number)
        os.close(stream_fd)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    status = run(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([status]))
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
