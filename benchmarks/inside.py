"""`python -m benchmarks.inside SOCKET serve …`: the command `tidemark`, which can be asked what its
interpreter has allocated.

The only addition is a thread that waits at a Unix socket, and answers whoever sends a line with one
of JSON. From the line `trace` on it says what `tracemalloc` has traced, too.
"""

from __future__ import annotations

import gc
import json
import socket
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

from tidemark.cli.main import main as tidemark
from tidemark.testing.process import BrokerProcess


def main() -> None:
    path = sys.argv.pop(1)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    threading.Thread(target=_answer, args=(listener,), daemon=True).start()
    tidemark()


def _answer(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as lines:
            if lines.readline() == b"trace\n" and not tracemalloc.is_tracing():
                tracemalloc.start()
            connection.sendall(json.dumps(_said()).encode())


def _said() -> dict[str, object]:
    said: dict[str, object] = {
        "blocks": sys.getallocatedblocks(),
        "collections": [generation["collections"] for generation in gc.get_stats()],
    }
    if tracemalloc.is_tracing():
        said["traced"], said["traced_peak"] = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
    return said


class AskableBroker(BrokerProcess):
    """A broker process that can be asked."""

    def command(self) -> list[str]:
        python, _, _, *arguments = super().command()
        return [python, "-m", "benchmarks.inside", str(self._socket), *arguments]

    def ask(self, line: str = "look") -> dict[str, Any]:  # its JSON
        """`trace` has it trace from now on."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self._socket))
            client.sendall(f"{line}\n".encode())
            received = b""
            while data := client.recv(65_536):
                received += data
        said: dict[str, Any] = json.loads(received)
        return said

    @property
    def _socket(self) -> Path:
        return self.data_dir.parent / "inside"


if __name__ == "__main__":
    main()
