"""Every setting of a broker: its name, its values, its default and what it is for.

The sections are the only table of them. The configuration reference is generated from it, and
DescribeConfigs answers from it. A field's name is the setting's name with underscores for dots.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from tidemark.broker.config.addresses import Endpoint, Listener, SecurityProtocol
from tidemark.broker.config.fields import Setting, settings_of
from tidemark.broker.config.sections.balancing import Balancing
from tidemark.broker.config.sections.broker import Identity
from tidemark.broker.config.sections.cluster import Cluster
from tidemark.broker.config.sections.connections import Connections
from tidemark.broker.config.sections.groups import Groups
from tidemark.broker.config.sections.observing import Observing
from tidemark.broker.config.sections.producers import Producers
from tidemark.broker.config.sections.security import Security
from tidemark.broker.config.sections.topics import Topics

_WITH_SASL: Final = {
    SecurityProtocol.PLAINTEXT: SecurityProtocol.SASL_PLAINTEXT,
    SecurityProtocol.SSL: SecurityProtocol.SASL_SSL,
}


@attrs.frozen(kw_only=True, slots=False)
class BrokerSettings(
    Security,
    Observing,
    Producers,
    Groups,
    Topics,
    Connections,
    Balancing,
    Cluster,
    Identity,
):
    """A broker's configuration, checked. Build it with `load_settings`, or directly in tests.

    The sections are in the reverse of the reference's order, as `attrs` collects fields. Nobody
    compares or prints one of them, so what would do that is not compiled at every start.
    """

    def client_listeners(self) -> tuple[Listener, ...]:
        """Each listener with its advertised address and protocol. Needs settings that agree."""
        advertised = {endpoint.name: endpoint.address for endpoint in self.advertised_listeners}
        return tuple(
            Listener(
                name=endpoint.name,
                address=endpoint.address,
                advertised=advertised.get(endpoint.name),
                protocol=self._protocol(endpoint),
            )
            for endpoint in self.listeners
        )

    def _protocol(self, endpoint: Endpoint) -> SecurityProtocol:
        protocols = dict(self.listener_security_protocol_map)
        protocol = SecurityProtocol(protocols.get(endpoint.name, endpoint.name))
        asks_for_sasl = bool(self.users) and not endpoint.is_named
        return _WITH_SASL.get(protocol, protocol) if asks_for_sasl else protocol


SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(settings_of(BrokerSettings))
"""Every setting by its name, in the order of the reference."""
