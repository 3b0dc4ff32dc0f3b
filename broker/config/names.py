"""Every name under which a setting is accepted, and which setting it means."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tidemark.broker.config.kafka_names import SCALED_TOPIC_DEFAULTS, TOPIC_DEFAULTS
from tidemark.broker.config.settings import SETTINGS
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name stands for: a setting, how many of its units, and which name is preferred.

    Where one source uses two names of one setting, the smaller rank counts, as in Kafka:
    `log.retention.ms` before `.minutes` before `.hours`.
    """

    setting: str
    rank: int = 0
    scale: int = 1


def _meanings() -> dict[str, Meaning]:
    meanings = {name: Meaning(name) for name in [*SETTINGS, *TOPIC_DEFAULTS]}
    for setting in SETTINGS.values():
        for rank, alias in enumerate(setting.aliases, start=1):
            meanings[alias] = Meaning(setting.name, rank)
    for name, (setting_name, scale) in SCALED_TOPIC_DEFAULTS.items():
        meanings[name] = Meaning(setting_name, rank=scale, scale=scale)
    return meanings


MEANINGS: Final[Mapping[str, Meaning]] = MappingProxyType(_meanings())
