"""Changes to configs one by one, as IncrementalAlterConfigs asks for them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tidemark.partitions.state_machines.config_table import Setting, check_new, find, split_list
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS, TopicConfig
from tidemark.protocol.configs import AlterOp
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    name: str
    op: AlterOp
    value: str | None


def altered(
    overrides: Mapping[str, str],
    changes: Iterable[ConfigChange],
    defaults: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """The overrides after `changes` (trap M11), all of them or none.

    APPEND and SUBTRACT start from the default where nothing was set. Raises `RequestError`
    INVALID_CONFIG as `TopicConfig.from_overrides` does, or where a config that is no list is
    appended to, and INVALID_REQUEST where one config is changed twice.
    """
    after = altered_in(TOPIC_SETTINGS, overrides, changes, defaults)
    TopicConfig.from_overrides(after, defaults)
    return after


def altered_in(
    table: Mapping[str, Setting],
    overrides: Mapping[str, str],
    changes: Iterable[ConfigChange],
    defaults: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """The same for any table of settings; what the values come to is the caller's to check."""
    after = dict(overrides)
    seen: set[str] = set()
    for change in changes:
        row = find(table, change.name)
        if change.name in seen:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"{change.name} is changed twice: send one change"
            )
        seen.add(change.name)
        if change.op is AlterOp.DELETE:
            after.pop(change.name, None)
            continue
        current = after.get(change.name, defaults.get(change.name, row.default))
        after[change.name] = _changed(row, change, current)
    return after


def _changed(row: Setting, change: ConfigChange, current: str) -> str:
    if change.value is None:
        raise RequestError(
            ErrorCode.INVALID_CONFIG,
            f"{row.name} has no value: give one, or delete it for the default",
        )
    if change.op is AlterOp.SET:
        check_new({row.name: row}, {row.name: change.value})
        return change.value
    if not row.is_list:
        raise RequestError(
            ErrorCode.INVALID_CONFIG,
            f"{row.name} is not a list, so nothing can be added to or taken from it: set it",
        )
    before, items = split_list(current), split_list(change.value)
    if change.op is AlterOp.APPEND:
        return ",".join(dict.fromkeys(before + items))
    return ",".join(item for item in before if item not in items)
