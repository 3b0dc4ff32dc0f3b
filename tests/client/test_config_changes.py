"""Changing single configs at brokers that can only replace all of them."""

from tidemark.client.admin.config_calls import apply_changes
from tidemark.client.descriptions import ConfigEntry
from tidemark.protocol.configs import AlterOp, ConfigSource

SET, DELETE, APPEND, SUBTRACT = AlterOp
BEFORE = [
    ConfigEntry(name="cleanup.policy", value="delete", source=ConfigSource.DEFAULT),
    ConfigEntry(name="retention.ms", value="5", source=ConfigSource.TOPIC),
    ConfigEntry(name="segment.ms", value="7", source=ConfigSource.TOPIC),
]


def test_what_is_set_stays_and_defaults_are_not_made_overrides() -> None:
    assert apply_changes(BEFORE, []) == {"retention.ms": "5", "segment.ms": "7"}


def test_changes_are_made_one_after_the_other() -> None:
    after = apply_changes(
        BEFORE,
        [("retention.ms", SET, "6"), ("segment.ms", DELETE, None), ("segment.bytes", SET, "1")],
    )
    assert after == {"retention.ms": "6", "segment.bytes": "1"}


def test_a_list_is_extended_from_its_default_and_shortened() -> None:
    after = apply_changes(BEFORE, [("cleanup.policy", APPEND, "compact,delete")])
    assert after["cleanup.policy"] == "delete,compact"
    after = apply_changes(
        BEFORE, [("cleanup.policy", APPEND, "compact"), ("cleanup.policy", SUBTRACT, "delete")]
    )
    assert after["cleanup.policy"] == "compact"
