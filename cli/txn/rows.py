"""Transactions as rows of a table."""

import time
from typing import Final

from tidemark.cli.output import Column, Json
from tidemark.client import HangingTransaction, TransactionDescription, TransactionListing

HANGS: Final = "Hanging"
COLUMNS: Final = (
    Column("transactional_id"),
    Column("state"),
    Column("producer_id"),
    Column("coordinator"),
    Column("open_for"),
    Column("partition"),
    Column("offset"),
    Column("silent_for"),
)


def listed_row(listed: TransactionListing, found: TransactionDescription | None) -> dict[str, Json]:
    return {
        "transactional_id": listed.transactional_id,
        "state": listed.state,
        "producer_id": listed.producer_id,
        "coordinator": listed.coordinator,
        **since("open_for", None if found is None else found.started_ms),
        "partition": None,
        "offset": None,
        **since("silent_for", None),
    }


def described_row(found: TransactionDescription) -> dict[str, Json]:
    return listed_row(
        TransactionListing(
            transactional_id=found.transactional_id,
            producer_id=found.producer_id,
            state=found.state,
            coordinator=found.coordinator.node_id,
        ),
        found,
    )


def hanging_row(hanging: HangingTransaction) -> dict[str, Json]:
    return {
        "transactional_id": None,
        "state": HANGS,
        "producer_id": hanging.producer_id,
        "coordinator": None,
        **since("open_for", None),
        "partition": str(hanging.partition),
        "offset": hanging.start,
        **since("silent_for", hanging.last_timestamp_ms),
    }


def since(name: str, timestamp_ms: int | None) -> dict[str, Json]:
    """How long ago that was, for people by this name, and for programs in seconds."""
    seconds = None if timestamp_ms is None else max(0, time.time() - timestamp_ms / 1000)
    return {
        name: None if seconds is None else f"{seconds:.0f} s",
        f"{name}_seconds": None if seconds is None else round(seconds, 3),
    }
