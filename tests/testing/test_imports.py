"""What it costs others that `tidemark.testing` is installed: pytest loads its plugin every time."""

import pydoc
import subprocess
import sys

import pytest

import tidemark.testing


def loaded_by(code: str) -> set[str]:
    """The modules that a new interpreter has after this."""
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(ran.stdout.split())


def test_a_run_without_a_broker_imports_none() -> None:
    loaded = loaded_by("import tidemark.testing.pytest_plugin")
    assert "tidemark.testing.pytest_plugin" in loaded
    for heavy in ("trio", "construct", "tidemark.broker", "tidemark.client", "tidemark.protocol"):
        assert heavy not in loaded, heavy


@pytest.mark.parametrize("name", tidemark.testing.__all__)
def test_each_name_is_there_when_it_is_asked_for(name: str) -> None:
    assert getattr(tidemark.testing, name).__name__ == name


def test_help_knows_of_each_name() -> None:
    page = pydoc.plain(pydoc.render_doc(tidemark.testing))
    for name in tidemark.testing.__all__:
        assert f"\n    {name}(" in page or f" {name}(" in page, name


def test_another_name_is_not_there() -> None:
    with pytest.raises(
        AttributeError, match=r"'tidemark\.testing' has no attribute 'open_clutser'"
    ):
        _ = tidemark.testing.open_clutser  # type: ignore[attr-defined]  # that is the test


@pytest.mark.parametrize("module", ["testing.blocking", "cli.sim"])
def test_where_no_broker_can_run_it_is_said(module: str) -> None:
    """As on macOS, where `select` has no epoll."""
    epoll = "[delattr(select, name) for name in dir(select) if 'epoll' in name.lower()]"
    ran = subprocess.run(
        [sys.executable, "-c", f"import select, trio\n{epoll}\nimport tidemark.{module}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "ConfigError: brokers run on Linux only" in ran.stderr
