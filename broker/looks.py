"""Looks that are taken again and again, all at the same moments.

Half a dozen tasks look once or twice a second whether something has changed. Each by its own time
would wake a broker that has nothing else to do for each of them; a wake costs more than most looks.
"""

from math import floor

import trio


def next_look(period_seconds: float) -> float:
    """When to look again, by trio's clock: at a multiple of the period, half a period to one and a
    half from now. Who looks at each of them, or at each second one, does so with all others."""
    return (floor(trio.current_time() / period_seconds + 0.5) + 1) * period_seconds
