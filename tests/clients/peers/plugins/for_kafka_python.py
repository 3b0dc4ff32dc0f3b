"""kafka-python takes a broker from its environment: there is nothing to adapt."""
