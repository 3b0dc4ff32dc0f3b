"""Logs that were cut, where the journal has lost that it said so: kept up to there, and no more."""

from tests.mutations import Mutation, Room

_rule = Room("partitions/storage").rule
_ENDS_THERE = "test_unknown_cuts.py::test_it_ends_where_it_was_cut"


MUTATIONS: tuple[Mutation, ...] = (
    _rule(
        "a log that was cut may end before its recovery point",
        "tail_recovery.py",
        old="        if not self._may_end_earlier:\n            refuse_lost_end(",
        new="        if True:\n            refuse_lost_end(",
        killed_by=f"{_ENDS_THERE}[0-False]",
    ),
    _rule(
        "what came behind a cut may be torn below the recovery point",
        "tail_recovery.py",
        old="        if end_offset < self._recovery_point and not self._may_end_earlier:\n",
        new="        if end_offset < self._recovery_point:\n",
        killed_by=f"{_ENDS_THERE}[1-True]",
    ),
    _rule(
        "a log that was cut is looked at, though it ends at its recovery point",
        "recovery.py",
        old="        if not self._may_end_earlier and ends_at(",
        new="        if ends_at(",
        killed_by=f"{_ENDS_THERE}[3-True]",
    ),
    _rule(
        "a cut is looked for below the segment of the recovery point",
        "recovery.py",
        old="            while settled and not ends_in_epoch(segments[settled], self._epochs):\n"
        "                settled -= 1\n",
        new="            pass\n",
        killed_by=f"{_ENDS_THERE}[14-True]",
    ),
    _rule(
        "a snapshot from behind a cut is not believed",
        "recovery.py",
        old="            settled = min(settled, segments[self._settled(segments)].base_offset)\n",
        new="            pass\n",
        killed_by=f"{_ENDS_THERE}[14-True]",
    ),
    _rule(
        "what is before a batch of the log's own epochs was not cut",
        "segment_ends.py",
        old="    return last is not None and epochs.allow(",
        new="    return False and epochs.allow(",
        killed_by="test_unknown_cuts.py::test_a_segment_that_is_missing_between_others_was_not_cut",
    ),
    _rule(
        "a log that begins with another one's batches begins where it is known to have begun",
        "recovery.py",
        old="        if segments and self._is_of_another_log(segments[0]):\n",
        new="        if False:\n",
        killed_by="test_unknown_cuts.py"
        "::test_what_begins_with_another_log_is_not_where_this_one_began[3]",
    ),
    _rule(
        "a log that begins with a batch of its own may begin later",
        "segment_ends.py",
        old="    return first is not None and epochs.allow(",
        new="    return False and epochs.allow(",
        killed_by="test_unknown_cuts.py::test_what_begins_with_its_own_begins_there",
    ),
    _rule(
        "while the journal is whole, a log ends no earlier",
        "tail_recovery.py",
        old="        if end_offset < self._recovery_point and not self._may_end_earlier:\n",
        new="        if False:\n",
        killed_by="test_unknown_cuts.py::test_where_the_journal_is_whole_there_was_no_cut[1]",
    ),
)
