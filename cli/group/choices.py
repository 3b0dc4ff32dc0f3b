"""Which of a group's partitions an option means."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from tidemark.client import TopicPartition
from tidemark.protocol.errors import TidemarkError

_PARTITIONS_MAX: Final = 100_000
"""As many as a topic can have."""
_PART: Final = re.compile(r"([0-9]{1,20})(?:-([0-9]{1,20}))?")


@dataclass(frozen=True, slots=True)
class Choice:
    """A topic, or only some of its partitions."""

    topic: str
    partitions: frozenset[int] | None
    text: str

    def __str__(self) -> str:
        return self.text

    def has(self, at: TopicPartition) -> bool:
        return at.topic == self.topic and (
            self.partitions is None or at.partition in self.partitions
        )

    def among(self, there: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Raises `TidemarkError` for a partition that the topic does not have."""
        missing = (self.partitions or frozenset()) - {at.partition for at in there}
        if missing:
            raise TidemarkError(f"topic {self.topic} has no partition {min(missing)}")
        return list(filter(self.has, there))


def parse_choice(text: str) -> Choice:
    """`orders`, or `orders:0,3-5`: a topic's name has no colon."""
    topic, colon, numbers = text.partition(":")
    if not colon:
        return Choice(topic, None, text)
    found: set[int] = set()
    for part in numbers.split(","):
        numbered = _PART.fullmatch(part)
        if numbered is None:
            raise click.BadParameter(f"{text!r}: say partitions as in orders:0,3-5")
        start, end = int(numbered[1]), int(numbered[2] or numbered[1]) + 1
        if not start < end <= start + _PARTITIONS_MAX:
            raise click.BadParameter(f"{text!r}: {part} is no range of a topic's partitions")
        found.update(range(start, end))
    return Choice(topic, frozenset(found), text)
