"""What may be said of who allows what."""

from typing import Final

from tidemark.partitions.state_machines.config_table import ConfigType
from tidemark.protocol.values import dataclass

STANDARD: Final = "StandardAuthorizer"
_CALLED: Final = (
    STANDARD,
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
"""What Kafka's configurations call it, from one version to the next."""


@dataclass(frozen=True, slots=True)
class Authorizer:
    """One that goes by ACLs, or none."""

    type: ConfigType = ConfigType.STRING

    def parse(self, text: str) -> str | None:
        if not text.strip():
            return None
        if text.strip() not in _CALLED:
            raise ValueError(f"{STANDARD}, or nothing; there is no other authorizer here")
        return STANDARD


@dataclass(frozen=True, slots=True)
class Principals:
    """`User:name` with semicolons between: names may have commas."""

    type: ConfigType = ConfigType.STRING
    separator: str = ";"

    def parse(self, text: str) -> tuple[str, ...]:
        principals = [each.strip() for each in text.split(self.separator) if each.strip()]
        if not all(each.startswith("User:") and each != "User:" for each in principals):
            raise ValueError("User:name for each of them, with semicolons between")
        return tuple(dict.fromkeys(principals))
