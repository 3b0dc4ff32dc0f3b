"""Who may connect."""

from typing import Final

import attrs

from tidemark.broker.config.fields import setting
from tidemark.broker.config.users import User, Users
from tidemark.partitions.state_machines.config_table import ListOf

_SECTION: Final = "Security"


@attrs.frozen(kw_only=True, slots=False, repr=False, eq=False)
class Security:
    sasl_enabled_mechanisms: tuple[str, ...] = setting(
        "sasl.enabled.mechanisms",
        ListOf(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), empty_allowed=False),
        ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        "The ways in which a client may prove who it is.",
        section=_SECTION,
    )
    users: tuple[User, ...] = setting(
        "users",
        Users(),
        (),
        "Who may connect: `name:password` with commas between, or `[[users]]` tables with `name` "
        "and `password` in TOML. With any user, a listener that does not name its protocol "
        "asks for SASL.",
        section=_SECTION,
        is_secret=True,
    )
