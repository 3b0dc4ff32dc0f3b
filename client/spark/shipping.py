"""Giving this package to executors that do not have it."""

import atexit
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

import pyspark_tidemark
import tidemark

_ROOMS: Final = ("client", "protocol")
"""What a task imports."""


def ship(spark: SparkSession) -> None:
    """Send what the tasks need of this package to all executors of this session.

    They need its dependencies all the same, which are compiled: numpy, pyarrow, crc32c, cramjam,
    zstandard, construct and trio. Before the first read or write, for Python workers that run
    already do not look again.
    """
    folder = tempfile.mkdtemp(prefix="tidemark-shipped-")
    # Executors fetch it from here when they run their first task, which may be much later.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = str(write_zip(Path(folder) / "tidemark.zip"))
    # A session of Spark Connect has no context.
    if hasattr(spark, "sparkContext"):
        spark.sparkContext.addPyFile(path)
    else:
        spark.addArtifacts(path, pyfile=True)


def write_zip(path: Path) -> Path:
    """An archive that Python imports from, for `spark-submit --py-files`; returns its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        package = Path(tidemark.__path__[0])
        archive.write(package / "__init__.py", "tidemark/__init__.py")
        for room in _ROOMS:
            _add(archive, package / room, f"tidemark/{room}")
        _add(archive, Path(pyspark_tidemark.__path__[0]), "pyspark_tidemark")
    return path


def _add(archive: zipfile.ZipFile, package: Path, name: str) -> None:
    for file in sorted(package.rglob("*.py")):
        archive.write(file, f"{name}/{file.relative_to(package).as_posix()}")
