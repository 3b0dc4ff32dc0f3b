"""confluent-kafka-python takes brokers from its environment: there is nothing to adapt."""
