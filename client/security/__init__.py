"""How a client proves who it is, and how it knows that a broker is who it says: SASL and TLS."""

from tidemark.client.security.sasl import Sasl
from tidemark.client.security.tls import Tls, UntrustedBroker

__all__ = ["Sasl", "Tls", "UntrustedBroker"]
