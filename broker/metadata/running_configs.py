"""What can be set of brokers while they run: of one broker, or of all of them.

That is what their topics have by default, and throttles. Everything else is in a broker's file,
where it can be seen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from tidemark.broker.config import SETTINGS
from tidemark.broker.config.kafka_names import SCALED_TOPIC_DEFAULTS, is_without_meaning
from tidemark.partitions.state_machines.config_changes import ConfigChange, altered_in
from tidemark.partitions.state_machines.config_table import Setting, parse_all
from tidemark.partitions.state_machines.throttle_configs import THROTTLE_SETTINGS
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS
from tidemark.protocol.errors import ErrorCode, RequestError

RUNNING_SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        row.synonym: replace(row, name=row.synonym)
        for row in TOPIC_SETTINGS.values()
        if row.synonym is not None
    }
    | THROTTLE_SETTINGS
)
"""By the brokers' names."""


def replaced(configs: Mapping[str, str]) -> dict[str, str]:
    """The configs of brokers as they are to be kept. Raises `RequestError` INVALID_CONFIG for those
    that cannot change while a broker runs."""
    for name in configs:
        _check_name(name)
    parse_all(RUNNING_SETTINGS, configs)
    return dict(configs)


def changed(before: Mapping[str, str], changes: Iterable[ConfigChange]) -> dict[str, str]:
    """The configs of brokers after `changes`, all of them or none. Raises `RequestError`."""
    changes = list(changes)
    for each in changes:
        _check_name(each.name)
    # One that this version does not know was set by a later one, and means nothing here.
    known = {name: value for name, value in before.items() if name in RUNNING_SETTINGS}
    after = altered_in(RUNNING_SETTINGS, known, changes)
    parse_all(RUNNING_SETTINGS, after)
    return after


def _check_name(name: str) -> None:
    if name in RUNNING_SETTINGS:
        return
    if name in SETTINGS:
        why = "does not change while a broker runs: change its file and start it again"
    elif name in SCALED_TOPIC_DEFAULTS:
        why = f"does not change while a broker runs: set {SCALED_TOPIC_DEFAULTS[name][0]}"
    elif is_without_meaning(name):
        why = "has no meaning in Tidemark: leave it out"
    else:
        why = "is no config of a broker: leave it out"
    raise RequestError(ErrorCode.INVALID_CONFIG, f"{name} {why}")
