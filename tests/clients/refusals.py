"""How clients say that they were not let in."""

from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import KafkaException
from kafka.errors import KafkaError

from tidemark.client import RequestError

REFUSALS = (KafkaException, KafkaError, AiokafkaError, TimeoutError, RequestError, PermissionError)
