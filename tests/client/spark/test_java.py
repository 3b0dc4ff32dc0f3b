import os
import subprocess
from pathlib import Path

import pytest

from tidemark.client.spark.java import ensure_java


def test_a_java_home_that_is_set_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/opt/java")
    ensure_java()
    assert os.environ["JAVA_HOME"] == "/opt/java"


def test_a_java_runtime_is_found_where_none_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    ensure_java()
    java = Path(os.environ["JAVA_HOME"], "bin", "java")
    # As Spark calls it: a module that this runtime lacks, and arguments that need their quotes.
    done = subprocess.run(
        [
            java,
            "--add-modules=jdk.incubator.vector",
            "-Da=b c",
            "-XshowSettings:properties",
            "-version",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "a = b c" in done.stderr
