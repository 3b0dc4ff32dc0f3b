"""What a scrape tells of compaction."""

import time

from tidemark.broker.metrics.counts import Count, Latency
from tidemark.partitions.storage.compaction.job import Tally


class CompactionMetrics:
    """Of one broker. Partitions are known by their names, `<topic>-<partition>`."""

    def __init__(self) -> None:
        self.runs = Count()
        self.failures = Count()
        self.read_bytes = Count()
        self.written_bytes = Count()
        self.removed_records = Count()
        self.duration = Latency()
        self.last_run_seconds = 0.0
        """When the last run ended that succeeded, since 1970, before this start perhaps; 0 if no
        log knows of one."""
        self.dirty_ratios: dict[str, float] = {}
        self.cleaned_seconds: dict[str, float] = {}
        """When each one's last run ended, since 1970; 0 if it knows of none."""
        self.set_aside: dict[str, str] = {}
        """What cannot be compacted, and why."""
        self.unreadable_batches: dict[str, int] = {}
        """How many each one's last run has left as they are, where there were any."""

    def looked_at(self, dirty_ratios: dict[str, float]) -> None:
        """All there is to be compacted here, now."""
        self.dirty_ratios = dirty_ratios
        self.set_aside = {name: why for name, why in self.set_aside.items() if name in dirty_ratios}
        self.cleaned_seconds = {
            name: at for name, at in self.cleaned_seconds.items() if name in dirty_ratios
        }
        left = self.unreadable_batches.items()
        self.unreadable_batches = {name: count for name, count in left if name in dirty_ratios}

    def found(self, name: str, cleaned_ms: int | None) -> None:
        """A log that is looked at for the first time says when its last run ended."""
        self.cleaned_seconds[name] = 0.0 if cleaned_ms is None else cleaned_ms / 1000
        self.last_run_seconds = max(self.last_run_seconds, self.cleaned_seconds[name])

    def succeeded(self, name: str, tally: Tally, seconds: float) -> None:
        self.runs.inc()
        self.read_bytes.inc(tally.bytes_read)
        self.written_bytes.inc(tally.bytes_written)
        self.removed_records.inc(tally.records_read - tally.records_kept)
        self.duration.observe(seconds)
        self.last_run_seconds = self.cleaned_seconds[name] = time.time()
        self.set_aside.pop(name, None)
        self.unreadable_batches.pop(name, None)
        if tally.unreadable_batches:
            self.unreadable_batches[name] = tally.unreadable_batches

    def failed(self, name: str, why: str) -> None:
        self.failures.inc()
        self.set_aside[name] = why
