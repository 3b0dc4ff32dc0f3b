"""Where brokers run."""

import os
import select

from tidemark.protocol.errors import ConfigError


def check_system() -> None:
    """Raises `ConfigError` where no broker can run. It imports nothing that would fail there."""
    if not (hasattr(select, "epoll") and hasattr(os, "eventfd")):
        raise ConfigError(
            "brokers run on Linux only: their sockets are served with its epoll; from here, ask one"
            " that runs there, perhaps in a container or a virtual machine"
        )
