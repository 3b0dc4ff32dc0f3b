"""Topics that begin anew with each run, as the bare loop's file does.

Memory that was just given back is written in about half the time of memory that the kernel has to
find and a virtual machine's host to provide. A log whose retention keeps up writes the one, a log
that only grows the other: so what is compared has to write the same.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from tidemark.client.blocking import open_client

_SECONDS_MAX: Final = 30.0


class Anew:
    """Calling it gives a new topic's name, once the files of the one before are gone. As a block it
    leaves none behind."""

    def __init__(self, bootstrap: str, data: Path, topic: str, make: Callable[[str], None]) -> None:
        """`data` has the brokers' directories, at whatever depth."""
        self._bootstrap = bootstrap
        self._data = data
        self._topic = topic
        self._make = make
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()

    def __call__(self) -> str:
        self._give_back()
        self._count += 1
        self._make(self._name)
        return self._name

    @property
    def _name(self) -> str:
        return f"{self._topic}-{self._count}"

    def _give_back(self) -> None:
        if not self._count:
            return
        topic = self._name
        with open_client(self._bootstrap) as client:
            client.run(client.admin.delete_topic, topic)
        deadline = time.monotonic() + _SECONDS_MAX
        while self._is_there(f"{topic}-0"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the files of {topic} are still there")
            time.sleep(0.01)

    def _is_there(self, directory: str) -> bool:
        """By this name, or by the one that it has while it is being removed."""
        try:
            return any(self._data.rglob(f"{directory}*"))
        except FileNotFoundError:  # gone while it was looked into
            return True
