"""The other brokers: connections to them and from them, messages of groups, calls."""
