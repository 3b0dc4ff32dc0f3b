"""A table of something that each API's module has, which imports a module when its row is used."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from tidemark.protocol.registry import APIS

T = TypeVar("T")


class LateTable(Mapping[int, T], Generic[T]):
    """By API key. To ask which keys there are imports nothing.

    `look_up` is given the module, which is called what the registry calls the API.
    """

    def __init__(self, keys: Iterable[int], look_up: Callable[[Any], T]) -> None:
        # Any: a module, of which only what all of these have is asked for.
        self._keys = dict.fromkeys(keys)
        self._look_up = look_up

    def __getitem__(self, key: int) -> T:
        if key not in self._keys:
            raise KeyError(key)
        return self._look_up(import_module(f"tidemark.broker.handlers.{APIS[key].module}"))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)
