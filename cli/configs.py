"""Configs as descriptions of topics, brokers and groups show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemark.cli.output import Column, Form, Json, Section

if TYPE_CHECKING:
    from tidemark.client import ConfigEntry


def config_row(entry: ConfigEntry) -> dict[str, Json]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name.lower(),
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
    }


def config_section(entries: Sequence[ConfigEntry], form: Form, *, with_source: bool) -> Section:
    """Those that are not at their default; in the wide form all of them, and their sources."""
    shown = [entry for entry in entries if form is Form.WIDE or not entry.is_default]
    return Section(
        title="configs" if form is Form.WIDE else "configs that are not the default",
        rows=[config_row(entry) for entry in shown],
        columns=[Column("name"), Column("value"), Column("source", wide=not with_source)],
    )
