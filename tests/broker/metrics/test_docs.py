"""The reference page and the dashboard speak of metrics that are there."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, ProcessCollector

from tidemark.broker.metrics.reference import families, render, shown_name

DOCS = Path(__file__).parents[3] / "docs"
DASHBOARD = json.loads((DOCS / "grafana" / "tidemark.json").read_text(encoding="utf-8"))
METRIC = re.compile(r"\b(?:tidemark|process|kafka)_[a-z_]+")
LABELS_OF_A_SCRAPE = {"job", "instance", "le"}


def expressions() -> Iterator[str]:
    """Every query of the dashboard, those of its variables too."""
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["definition"]


def labels_by_sample() -> dict[str, set[str]]:
    """The samples that a scrape has, with their labels."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    everything = [*families(), *registry.collect()]
    return {
        sample.name: sample.labels.keys() | LABELS_OF_A_SCRAPE
        for family in everything
        for sample in family.samples
    }


def test_the_page_is_what_a_scrape_makes_of_it() -> None:
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == render(), (
        "run: python -m tidemark.broker.metrics.reference > docs/metrics.md"
    )


def test_no_two_families_have_one_name() -> None:
    names = [shown_name(family) for family in families()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_every_metric_and_label_of_the_dashboard_is_in_a_scrape(expression: str) -> None:
    there = labels_by_sample()
    used = METRIC.findall(expression)
    assert used
    for name in used:
        assert name in there
    labels = set(re.findall(r"(\w+)=~", expression))
    for by in re.findall(r"by \(([^)]*)\)", expression):
        labels |= {label.strip() for label in by.split(",")}
    for label in labels:
        assert any(label in there[name] for name in used), label


def test_every_metric_of_our_own_that_moves_is_on_the_dashboard() -> None:
    shown = {name for expression in expressions() for name in METRIC.findall(expression)}
    stems = {re.sub(r"_(bucket|count|sum|total)$", "", name) for name in shown}
    on_no_panel = {
        family.name
        for family in families()
        if family.name.startswith("tidemark_") and family.name not in stems | shown
    }
    assert on_no_panel == {
        "tidemark_build",  # the variables ask for its _info
        "tidemark_partition_high_watermark",
        "tidemark_partition_leader_epoch",
        "tidemark_partition_log_start_offset",
        "tidemark_partition_size_bytes",
        "tidemark_peer_received_frames",
        "tidemark_peer_sent_frames",
        "tidemark_recovery_cut_bytes",
        "tidemark_recovery_read_bytes",
    }


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
