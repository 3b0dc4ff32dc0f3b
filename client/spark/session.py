"""A Spark session with everything in place."""

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from tidemark.client.spark.java import ensure_java


def session(
    master: str = "local[*]", *, app_name: str = "tidemark", config: Mapping[str, str] | None = None
) -> SparkSession:
    """A session in which `format("tidemark")` is known, with a Java runtime if none is set.

    If there is a session in this process already, it is that one. Its Python workers run the
    interpreter that runs this, so that they find this package in a virtual environment, too.
    """
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(app_name)
    for name, value in (config or {}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Make `format("tidemark")` known in this session."""
    from pyspark_tidemark import DefaultSource

    spark.dataSource.register(DefaultSource)
