"""Settings that brokers were given while they run: one broker's, and those of all.

Which settings can be given so, and what values they take, is the brokers' to know: here they are
names and texts.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tidemark.protocol.types import NodeId

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class BrokerConfigs:
    """The part of the cluster's state that says how brokers are to be set."""

    def __init__(self) -> None:
        self._of: dict[NodeId | None, dict[str, str]] = {}
        self.revision = 0
        """How often they have changed."""

    def of(self, node_id: NodeId | None) -> Mapping[str, str]:
        """What was set for one broker; for all, if it is `None`."""
        return self._of.get(node_id, _NONE)

    def set(self, node_id: NodeId | None, configs: Mapping[str, str]) -> None:
        """Replaces all that was set there."""
        self.revision += 1
        self._of.pop(node_id, None)
        if configs:
            self._of[node_id] = dict(configs)

    def forget_broker(self, node_id: NodeId) -> None:
        self._of.pop(node_id, None)

    # As a part of a snapshot. Any: JSON's own values

    def body(self) -> list[Any]:
        return [{"node_id": node, "configs": configs} for node, configs in self._of.items()]

    @classmethod
    def from_body(cls, body: list[Any]) -> "BrokerConfigs":
        made = cls()
        for each in body:
            made.set(each["node_id"], each["configs"])
        return made
