"""The messages of the protocol, one module for each API."""
