"""Stands for the package that starts Kafka, which is imported and not used."""
