"""Without an extra's libraries, what needs them says which extra it is."""

import subprocess
import sys

import pytest


def imported(module: str, *, without: str) -> subprocess.CompletedProcess[str]:
    """In a new interpreter that cannot import `without`."""
    program = f"import sys; sys.modules[{without!r}] = None; import {module}"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("tidemark.client.columns", "pyarrow", "columns"),
        ("tidemark.client.columns.placing", "numpy", "columns"),
        ("tidemark.protocol.records.columns.scan", "numpy", "columns"),
        ("tidemark.client.spark", "pyspark", "spark"),
        ("tidemark.client.spark.rows", "pyarrow", "spark"),
        ("pyspark_tidemark", "pyspark", "spark"),
    ],
)
def test_who_lacks_a_library_is_told_which_extra_brings_it(
    module: str, library: str, extra: str
) -> None:
    ran = imported(module, without=library)
    assert ran.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: No module named {library!r}, which comes with Tidemark's extra"
        f" {extra}: pip install '.[{extra}]' in its checkout"
    )


def test_another_library_that_is_missing_is_named_as_ever() -> None:
    ran = imported("tidemark.client.columns", without="construct")
    assert ran.stderr.splitlines()[-1].startswith("ModuleNotFoundError: ")
    assert "extra" not in ran.stderr.splitlines()[-1]
