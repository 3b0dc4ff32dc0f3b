"""Which brokers can read a command, by the newest version of the protocol between brokers that they
speak.

A broker that meets a command it does not know goes no further, and where most of those who vote on
the metadata are such, no change is taken any more. So whoever leads the metadata appends a command
only if all brokers that are there can read it (decision 21).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from tidemark.partitions.state_machines.cluster_commands import (
    AlterAcls,
    AlterUsers,
    Command,
    CreateTopic,
    SetGroupConfigs,
    SetTopicConfigs,
)
from tidemark.protocol.messages.peer.versions import FIRST_VERSION

_SINCE: Final[Mapping[str, int]] = {AlterAcls.__name__: 3, AlterUsers.__name__: 3}
"""Of commands, and of configs of topics and groups: a name that the metadata do not know is refused
there. What is missing has been there from the first version that is spoken here."""


def version_of(command: Command, since: Mapping[str, int] = _SINCE) -> int:
    """The first version of which it holds that who speaks it can read this command."""
    names = (type(command).__name__, *_configs(command))
    return max(since.get(name, FIRST_VERSION) for name in names)


def _configs(command: Command) -> Iterable[str]:
    """Not those of brokers: to one that does not know them, they mean nothing."""
    match command:
        case CreateTopic() | SetTopicConfigs() | SetGroupConfigs():
            return command.configs
    return ()
