"""The signals that tell a broker to stop.

The first one stops it in order. Another one ends it at once, whatever it is at, unless it follows
so soon that it is the same once more: `timeout` and other wrappers signal their child, and then the
group that it is in.
"""

import math
import signal
import time
from types import FrameType
from typing import Final

import trio

ECHO_SECONDS: Final = 0.5


async def wait_signal() -> signal.Signals:
    """Until this process is to stop: the signal that said so. To be called once."""
    first_at = -math.inf

    def end_unless_echo(number: int, _frame: FrameType | None) -> None:
        if time.monotonic() > first_at + ECHO_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    stopping = [signal.SIGTERM, signal.SIGINT]
    for number in stopping:
        signal.signal(number, end_unless_echo)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        # A terminal that ends may say so more than once, and means no more by it.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        stopping.append(signal.SIGHUP)
    # What was set above is in force again behind it, also for what comes before its end.
    with trio.open_signal_receiver(*stopping) as signals:
        first = await anext(aiter(signals))
        first_at = time.monotonic()
    return signal.Signals(first)
