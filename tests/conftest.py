"""For every test."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A deadline per example measures how busy the machine is. Slow tests end by pytest's own time-out.
settings.register_profile("tidemark", deadline=None)
settings.load_profile("tidemark")


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One Spark for all tests: it takes longer to start than they take to run."""
    from tidemark.client.spark import session

    started = session(
        "local[2]",
        config={
            "spark.ui.enabled": "false",
            # It ends before the better compiler would have paid off.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.pollingDelay": "100ms",
        },
    )
    started.sparkContext.setLogLevel("OFF")
    # Registered sources are known in one session only: in this one it was found by its name.
    yield started.newSession()
    started.stop()
