"""An operator that has things moved while things go wrong."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Final

import trio

from tests.chaos.operations import OPERATIONS, Order, Place, orders, put_in_order, what_is_open
from tidemark.client import Admin, ClientSettings, ErrorCode, RequestError, open_client

_PATIENCE: Final = ClientSettings(
    connect_timeout_seconds=3.0, request_timeout_seconds=5.0, retry_timeout_seconds=8.0
)
_OPERATION_SECONDS: Final = 40.0
_SETTLED_SECONDS: Final = 60.0
_END_SECONDS: Final = _OPERATION_SECONDS + 2 * _SETTLED_SECONDS
_LOOK_SECONDS: Final = 0.1


@dataclass(slots=True)
class Tally:
    """One kind of operation: how often, how often while something went wrong, what came of it."""

    times: int = 0
    beside_faults: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)


class Operator:
    """Acts from `running` on, one thing after the other, in a thread of its own."""

    def __init__(self, bootstrap: str, place: Place, seed: int, log_path: Path) -> None:
        self.tallies: dict[str, Tally] = {}
        self.is_fault_on = False
        """Set from outside, for the report alone."""
        self.left: list[str] | None = None
        """What still was open a minute after the last order; None if nobody could say."""
        self.problems: list[str] = []
        self._bootstrap = bootstrap
        self._place = replace(place, note=self._note)
        self._seed = seed
        self._log_path = log_path
        self._began = time.monotonic()
        self._stopping = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """At the end it puts things in order, and waits until nothing is open any more."""
        thread = threading.Thread(target=self._run, name="operator", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join(_END_SECONDS)
            if thread.is_alive():
                self.problems.append("the operator does not come to an end")
            elif self.left is None:
                self.problems.append("nobody says whether what was asked for is done")
            elif self.left:
                self.problems.append(f"open at the end: {'; '.join(self.left)}")

    def _run(self) -> None:
        try:
            trio.run(self._work)
        except BaseException as error:
            self.problems.append(f"the operator fails: {error!r}")
            raise

    async def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                async with open_client(self._bootstrap, settings=_PATIENCE) as client:
                    await self._operate(client.admin)
                    return
            except OSError as error:  # the first fault is of all brokers
                self._note(f"no broker answers: {error}")
                await trio.sleep(_LOOK_SECONDS)

    async def _operate(self, admin: Admin) -> None:
        for order in orders(self._seed, OPERATIONS):
            await self._pause(order.pause_seconds)
            if self._stopping.is_set():
                break
            await self._carry_out(admin, order)
        await self._finish(admin)

    async def _pause(self, seconds: float) -> None:
        until = trio.current_time() + seconds
        while not self._stopping.is_set():
            left = until - trio.current_time()
            if left <= 0:
                break
            await trio.sleep(min(left, _LOOK_SECONDS))

    async def _carry_out(self, admin: Admin, order: Order) -> None:
        tally = self.tallies.setdefault(order.kind, Tally())
        tally.times += 1
        tally.beside_faults += self.is_fault_on
        self._note(f"{order.kind} …")
        try:
            with trio.fail_after(_OPERATION_SECONDS):
                said = await OPERATIONS[order.kind](admin, self._place, Random(order.seed))
            sentence = ""
        except (RequestError, OSError, trio.TooSlowError) as error:
            said, sentence = outcome_of(error), str(error)
        tally.outcomes[said] += 1
        self._note(f"{said} {sentence}")

    async def _finish(self, admin: Admin) -> None:
        with trio.move_on_after(_SETTLED_SECONDS):
            while self.left != []:
                try:
                    await put_in_order(admin)
                    self.left = await what_is_open(admin)
                except (RequestError, OSError) as error:
                    self._note(f"put in order: {error}")
                await trio.sleep(_LOOK_SECONDS)
        self._note(f"put in order; open: {self.left}")

    def _note(self, what: str) -> None:
        with self._log_path.open("a") as log:
            log.write(f"{time.monotonic() - self._began:8.2f} {what}\n")


def outcome_of(error: RequestError | OSError | trio.TooSlowError) -> str:
    """In a word or two, so that outcomes can be counted."""
    if isinstance(error, RequestError):
        if error.code is ErrorCode.REQUEST_TIMED_OUT:
            return "timed out"
        return f"refused, {error.code.name}"
    return "timed out" if isinstance(error, trio.TooSlowError | TimeoutError) else "no answer"


def lines_of(tallies: Mapping[str, Tally]) -> list[str]:
    """For a report."""
    return [
        f"{kind}: {tally.times} times, {tally.beside_faults} beside a fault: "
        + ", ".join(f"{said} {times}" for said, times in tally.outcomes.most_common())
        for kind, tally in sorted(tallies.items())
    ]
