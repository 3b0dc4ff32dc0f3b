"""All steps of a compaction, one behind the other on one thread: where nobody is kept waiting."""

from collections.abc import Iterable

from tidemark.partitions.storage.compaction.compacting import CompactionRun
from tidemark.partitions.storage.compaction.job import Tally
from tidemark.partitions.storage.compaction.settings import CompactionLimits, CompactionSettings
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.log import Log
from tidemark.protocol.types import Offset, ProducerId


def compact_at_once(
    files: Files,
    log: Log,
    settings: CompactionSettings,
    *,
    end_offset: Offset,
    now_ms: int,
    producers: Iterable[ProducerId] = (),
    limits: CompactionLimits | None = None,
) -> Tally | None:
    """Compact what is due below `end_offset`, all of which is committed; `None` if nothing is.

    Raises `OSError`. Unless the log has failed by it, it may be tried again.
    """
    dirt = log.dirt(settings, now_ms, end_offset=end_offset)
    if not dirt.is_due(settings):
        return None
    job = log.compaction_job(
        dirt, settings, limits or CompactionLimits(), now_ms=now_ms, producers=producers
    )
    run = CompactionRun(files, job, lambda size_bytes: None)
    for rewritten in run:
        swap = log.begin_swap(rewritten) if rewritten.is_changed else None
        if swap is None:
            continue
        try:
            if swap.commit():
                log.adopt(swap)
                swap.finish()
        finally:
            log.end_swap(swap)
    log.note_cleaned(run.tally.cleaned_to)
    log.sweep().run()
    return run.tally
