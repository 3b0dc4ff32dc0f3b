"""Options that begin with `kafka.`: settings of Java's clients, passed through where they have a
meaning here.

What would change which records are read or stored, or how the broker is reached, and cannot be
honoured, is refused; the rest has no effect, which is logged.
"""

import logging
import re
from typing import Final

from tidemark.client.retries import Backoff
from tidemark.client.security.kafka_names import NAMES as SECURITY_NAMES
from tidemark.client.security.kafka_names import read_security
from tidemark.client.settings import ClientSettings
from tidemark.client.spark.values import Options
from tidemark.protocol.errors import ConfigError

log = logging.getLogger(__name__)

KAFKA_HONOURED: Final = (
    "kafka.bootstrap.servers",
    "kafka.client.id",
    "kafka.client.rack",
    "kafka.default.api.timeout.ms",
    "kafka.metadata.max.age.ms",
    "kafka.metadata.max.idle.ms",
    "kafka.request.timeout.ms",
    "kafka.retry.backoff.max.ms",
    "kafka.retry.backoff.ms",
    "kafka.socket.connection.setup.timeout.ms",
    *(f"kafka.{name}" for name in SECURITY_NAMES),
)
"""Of both directions; see `read_client`."""

_REFUSED: Final = re.compile(
    r"kafka\.(auto\.offset\.reset|(key|value)\.(de)?serializer|enable\.auto\.commit"
    r"|interceptor\.classes|partitioner\.class|security\..*|sasl\..*|ssl\..*)"
)


def check_kafka_option(name: str, side: str) -> None:
    """Refuse, or say that it has no effect, what is not honoured. `name` is lower-cased."""
    if _REFUSED.fullmatch(name):
        raise ConfigError(f"the option {name} is not supported by the {side} tidemark")
    log.warning("the option %s is one of Java's client and has no effect", name)


def read_bootstrap(options: Options) -> str:
    """Where the brokers are."""
    both = {
        value
        for name in ("bootstrap", "kafka.bootstrap.servers")
        if (value := options.text(name)) is not None
    }
    if not both:
        raise ConfigError("no broker: set the option kafka.bootstrap.servers to host:port")
    if len(both) > 1:
        raise ConfigError("the options bootstrap and kafka.bootstrap.servers differ")
    return both.pop()


def read_client(options: Options, *, rack: str | None = None) -> ClientSettings:
    """How brokers are talked to."""
    of_kafka = {
        name.removeprefix("kafka."): value
        for name, value in options.given.items()
        if name.startswith("kafka.")
    }
    sasl, tls = read_security(of_kafka, prefix="kafka.")
    default = ClientSettings()

    def seconds(name: str, otherwise: float) -> float:
        milliseconds = options.count(name)
        return otherwise if milliseconds is None else milliseconds / 1000

    backoff = Backoff()
    pause = seconds("kafka.retry.backoff.ms", backoff.initial_seconds)
    try:
        return ClientSettings(
            rack=rack or None,
            sasl=sasl,
            tls=tls,
            client_id=options.text("kafka.client.id") or "tidemark-spark",
            connect_timeout_seconds=seconds(
                "kafka.socket.connection.setup.timeout.ms", default.connect_timeout_seconds
            ),
            request_timeout_seconds=seconds(
                "kafka.request.timeout.ms", default.request_timeout_seconds
            ),
            retry_timeout_seconds=seconds(
                "kafka.default.api.timeout.ms", default.retry_timeout_seconds
            ),
            metadata_max_age_seconds=seconds(
                "kafka.metadata.max.age.ms", default.metadata_max_age_seconds
            ),
            metadata_max_idle_seconds=seconds(
                "kafka.metadata.max.idle.ms", default.metadata_max_idle_seconds
            ),
            backoff=Backoff(
                initial_seconds=pause,
                max_seconds=max(pause, seconds("kafka.retry.backoff.max.ms", backoff.max_seconds)),
            ),
        )
    except ValueError as error:  # a time of none, for one
        raise ConfigError(f"the options kafka.*: {error}") from error
