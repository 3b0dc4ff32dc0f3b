"""Runs as files: all that was decided about a run, to be run again whatever the drawing becomes.

A seed alone says how a run goes only for as long as nobody changes how knobs and faults are drawn
from it. A file holds what was drawn: every knob and every fault, and with it why it was kept.

```
{
 "about": "…",              for people; optional
 "seed": 1011,              of the network, the clients and the disks
 "invariant": "lost-write", what was broken when the file was written; optional
 "what": "…",               in the checker's words; optional
 "knobs": {"nodes": 3, …},  those that are missing have their defaults
 "tape": [{"at": 3.2, "kind": "power", "node": 1, …}, …]
}
```
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_type_hints

from tidemark.protocol.errors import TidemarkError
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.kinds import (
    AIMED_KINDS,
    COMPACTION_KINDS,
    REPLICA_KINDS,
    ROT_KINDS,
    TIMED_KINDS,
)
from tidemark.testing.simulator.knobs import Knobs, Layer
from tidemark.testing.simulator.run import Verdict, simulate

# Any: what stands in a JSON file may be anything, until it has been looked at.
_FIELDS: Final = {"about", "seed", "invariant", "what", "knobs", "tape"}
_MAY_BE_ZERO: Final = {
    *("producers", "write_seconds", "sync_seconds", "latency", "jitter", "loss", "duplication"),
    "lateness",
    *(
        "drift",
        "start_errors",
        "unsynced",
        "observers",
        "replica_reads",
        "resets_seen",
        "election_jitter",
        "election_rank",
        "fault_interval",
        "compaction_seconds",
        "compaction_strikes",
        "copy_bytes",
        "near_bytes",
    ),
    *("writers", "transformers", "members", "strangers", "migrating", "bumping"),
    *("client_lateness", "client_duplication", "late_calls"),
    *("aborts", "pauses", "slow_to_join", "give_ups"),
    *("trigger_chance", "trigger_delay"),
}
_KINDS: Final = (
    *(*TIMED_KINDS, *REPLICA_KINDS, *ROT_KINDS),
    *(*COMPACTION_KINDS, *AIMED_KINDS),
)
_SHARES: Final = {
    *("loss", "duplication", "lateness", "start_errors", "unsynced", "compaction_strikes"),
    *("resets_seen", "drift", "trigger_chance", "replica_reads"),
    *("bumping", "client_lateness", "client_duplication", "late_calls"),
    *("aborts", "pauses", "slow_to_join", "give_ups"),
}


class MalformedScenario(TidemarkError):
    """A file that is no scenario. Says where, by file and field."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """All that a run depends on, and what came of it once."""

    seed: int
    knobs: Knobs
    tape: tuple[Fault, ...]
    invariant: str | None = None
    """The one that it broke when it was kept."""
    what: str = ""
    about: str = ""
    unknown_knobs: tuple[str, ...] = ()
    """Those of the file that are knobs no more: the run may not be what it was."""

    @classmethod
    def of(cls, verdict: Verdict) -> Scenario:
        return cls(
            seed=verdict.seed,
            knobs=verdict.knobs,
            tape=verdict.tape,
            invariant=verdict.invariant,
            what=verdict.what,
        )

    def run(self, *, lines_max: int = 0) -> Verdict:
        return simulate(self.seed, knobs=self.knobs, script=self.tape, lines_max=lines_max)

    def write(self, path: Path) -> Path:
        """Write the file, and its directory if need be. Raises `OSError`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.to_text())
        return path

    def to_text(self) -> str:
        """A line for each knob and each fault, so that two scenarios can be compared."""
        head = {"about": self.about, "seed": self.seed}
        if self.invariant is not None:
            head |= {"invariant": self.invariant, "what": self.what}
        lines = [f' "{key}": {json.dumps(value)},' for key, value in head.items() if value != ""]
        knobs = [f'  "{key}": {json.dumps(value)}' for key, value in self.knobs.to_json().items()]
        tape = [f"  {json.dumps(fault.to_json())}" for fault in self.tape]
        parts = ["{", *lines, ' "knobs": {', ",\n".join(knobs), " },"]
        parts += [' "tape": [', ",\n".join(tape), " ]"] if tape else [' "tape": []']
        return "\n".join([*parts, "}", ""])


def read_scenario(path: Path) -> Scenario:
    """Raises `OSError`, or `MalformedScenario` if the file is none."""
    try:
        values = json.loads(path.read_bytes())
    except ValueError as error:
        raise MalformedScenario(str(path), f"not JSON: {error}") from None
    return _Reader(str(path)).scenario(values)


class _Reader:
    """Looks at every value before anything is made of it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def scenario(self, values: Any) -> Scenario:  # Any: JSON
        found = self._object("", values)
        for name in found:
            if name not in _FIELDS:
                raise self._bad(name, f"no such field; there are {', '.join(sorted(_FIELDS))}")
        for name in ("seed", "knobs", "tape"):
            if name not in found:
                raise self._bad(name, "missing")
        knobs, unknown = self._knobs(found["knobs"])
        return Scenario(
            seed=self._value("seed", found["seed"], int),
            knobs=knobs,
            tape=self._tape(found["tape"], knobs),
            invariant=self._value("invariant", found.get("invariant"), str, NoneType),
            what=self._value("what", found.get("what", ""), str),
            about=self._value("about", found.get("about", ""), str),
            unknown_knobs=unknown,
        )

    def _knobs(self, values: Any) -> tuple[Knobs, tuple[str, ...]]:  # Any: JSON
        types = get_type_hints(Knobs)
        known: dict[str, Any] = {}
        unknown = []
        for name, value in self._object("knobs", values).items():
            where = f"knobs.{name}"
            if name not in types:
                unknown.append(name)
            elif types[name] in (int, float):
                known[name] = self._number(where, value, types[name])
                self._check_range(name, known[name])
            elif types[name] is bool:
                known[name] = self._value(where, value, bool)
            elif types[name] is str:
                known[name] = self._value(where, value, str)
            else:
                known[name] = self._names(where, value)
        knobs = Knobs(**known)
        if knobs.layer not in set(Layer):
            raise self._bad(
                "knobs.layer", f"{knobs.layer!r}, and must be one of {', '.join(Layer)}"
            )
        if knobs.voters > knobs.nodes:
            raise self._bad("knobs.voters", f"{knobs.voters}, of {knobs.nodes} nodes")
        return knobs, tuple(unknown)

    def _check_range(self, name: str, value: float) -> None:
        if value < 0 or (value == 0 and name not in _MAY_BE_ZERO):
            least = "0 or more" if name in _MAY_BE_ZERO else "more than 0"
            raise self._bad(f"knobs.{name}", f"{value}, and must be {least}")
        if name in _SHARES and value > 1:
            raise self._bad(f"knobs.{name}", f"{value}, and must be at most 1")

    def _tape(self, values: Any, knobs: Knobs) -> tuple[Fault, ...]:  # Any: JSON
        faults = self._list("tape", values)
        return tuple(self._fault(f"tape[{at}]", fault, knobs) for at, fault in enumerate(faults))

    def _fault(self, where: str, values: Any, knobs: Knobs) -> Fault:  # Any: JSON
        types = get_type_hints(Fault)
        found: dict[str, Any] = {}
        for name, value in self._object(where, values).items():
            field = f"{where}.{name}"
            if name not in types:
                raise self._bad(field, f"no such field; there are {', '.join(types)}")
            if name == "links":
                found[name] = self._links(field, value, knobs)
            elif types[name] is str:
                found[name] = self._value(field, value, str)
            else:
                found[name] = self._number(field, value, types[name])
                if found[name] < 0:
                    raise self._bad(field, f"{found[name]}, and must be 0 or more")
        for name in ("at", "kind"):
            if name not in found:
                raise self._bad(f"{where}.{name}", "missing")
        if found["kind"] not in _KINDS:
            kinds = ", ".join(_KINDS)
            raise self._bad(f"{where}.kind", f"no fault {found['kind']!r}; there are {kinds}")
        return Fault(**found)

    def _links(self, where: str, values: Any, knobs: Knobs) -> tuple[tuple[int, int], ...]:
        nodes = range(1, knobs.nodes + 1)
        links = []
        for link in self._list(where, values):
            is_pair = isinstance(link, list) and len(link) == 2
            if not is_pair or link[0] == link[1] or not all(node in nodes for node in link):
                raise self._bad(where, f"{link!r} is not two of the brokers 1 to {knobs.nodes}")
            links.append((link[0], link[1]))
        return tuple(links)

    def _names(self, where: str, values: Any) -> tuple[str, ...]:  # Any: JSON
        return tuple(self._value(where, value, str) for value in self._list(where, values))

    def _object(self, where: str, value: Any) -> Mapping[str, Any]:  # Any: JSON
        found: Mapping[str, Any] = self._value(where, value, dict)
        return found

    def _list(self, where: str, value: Any) -> Sequence[Any]:  # Any: JSON
        found: Sequence[Any] = self._value(where, value, list)
        return found

    def _number(self, where: str, value: Any, kind: type) -> Any:  # Any: JSON
        number = self._value(where, value, *([int] if kind is int else [int, float]))
        if not isfinite(number):
            raise self._bad(where, f"{number} is no number")
        return number

    def _value(self, where: str, value: Any, *kinds: type) -> Any:  # Any: JSON
        is_bool = isinstance(value, bool)  # which Python takes for a number
        if not isinstance(value, kinds) or (is_bool and bool not in kinds):
            raise self._bad(where, f"{_shortened(value)}, and must be {_NAMES[kinds[0]]}")
        return value

    def _bad(self, where: str, what: str) -> MalformedScenario:
        return MalformedScenario(f"{self._path}: {where}" if where else self._path, what)


_NAMES: Final = {
    int: "a number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def _shortened(value: Any) -> str:  # Any: JSON
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


assert {field.name for field in fields(Knobs)} >= _MAY_BE_ZERO | _SHARES
