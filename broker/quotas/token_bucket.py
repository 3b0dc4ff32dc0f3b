"""How long somebody has to be held back to stay within a rate. Pure: the time is an argument."""


class TokenBucket:
    """Fills at `rate` a second up to `burst_seconds` of it; what is taken may leave it in debt.

    Whoever is held back for as long as `take` says, each time, stays within the rate in the long
    run. The first wait is the one that Kafka's sampled windows give: what was taken beyond the
    window's worth, divided by the rate.
    """

    __slots__ = ("_at", "_level", "burst", "rate")

    def __init__(self, rate: float, burst_seconds: float, now: float) -> None:
        self.rate = rate
        self.burst = rate * burst_seconds
        self._level = self.burst
        self._at = now

    def take(self, amount: float, now: float) -> float:
        """Take it, whether it is there or not; the seconds until there is no debt any more."""
        self._fill(now)
        self._level -= amount
        return self._debt_seconds()

    def debt_seconds(self, now: float) -> float:
        self._fill(now)
        return self._debt_seconds()

    def is_full(self, now: float) -> bool:
        """Whether it remembers nothing that a new one would not know."""
        self._fill(now)
        return self._level >= self.burst

    def _fill(self, now: float) -> None:
        self._level = min(self.burst, self._level + (now - self._at) * self.rate)
        self._at = now

    def _debt_seconds(self) -> float:
        return max(0.0, -self._level / self.rate)
