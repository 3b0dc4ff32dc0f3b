"""A client for programs that nobody watches: a broker that is just restarting does not end them."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from random import Random

from tidemark.client.blocking.client import BlockingClient, open_client
from tidemark.client.retries import may_pass
from tidemark.client.settings import ClientSettings
from tidemark.protocol.errors import RequestError

log = logging.getLogger(__name__)


@contextmanager
def open_patient_client(
    bootstrap: str | Sequence[str],
    *,
    patience_seconds: float,
    settings: ClientSettings | None = None,
) -> Iterator[BlockingClient]:
    """As `open_client`, but brokers that cannot be reached are tried again for `patience_seconds`.

    Raises the last error then, and at once what does not pass (a password that is wrong).
    """
    with ExitStack() as stack:
        yield _open(stack, bootstrap, settings or ClientSettings(), patience_seconds)


def _open(
    stack: ExitStack,
    bootstrap: str | Sequence[str],
    settings: ClientSettings,
    patience_seconds: float,
) -> BlockingClient:
    until = time.monotonic() + patience_seconds
    is_told = False
    for pause in settings.backoff.delays(Random()):
        try:
            return stack.enter_context(open_client(bootstrap, settings=settings))
        except (OSError, RequestError) as error:
            left = until - time.monotonic()
            if left <= 0 or not may_pass(error):
                raise
            if not is_told:
                log.warning("%s; this is tried again for %g s", error, patience_seconds)
            is_told = True
        time.sleep(min(pause, left))
    raise AssertionError("there is always another pause")
