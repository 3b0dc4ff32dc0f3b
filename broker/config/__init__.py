"""A broker's configuration: what can be set, where it is read from, what it comes to."""

from tidemark.broker.config.addresses import Address, Endpoint, Listener, SecurityProtocol
from tidemark.broker.config.load import Loaded, load_settings
from tidemark.broker.config.settings import SETTINGS, BrokerSettings
from tidemark.broker.config.users import User

__all__ = [
    "SETTINGS",
    "Address",
    "BrokerSettings",
    "Endpoint",
    "Listener",
    "Loaded",
    "SecurityProtocol",
    "User",
    "load_settings",
]
