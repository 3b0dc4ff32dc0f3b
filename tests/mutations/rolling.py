"""What has segments closed by time: when it is due, and not again and again."""

from tests.mutations import Mutation
from tests.mutations.storage import storage_rule

_TESTS = "test_rolling.py::"

MUTATIONS = (
    storage_rule(
        "a batch that is too late for its segment begins another",
        "log_appending.py",
        old="            or (last_ms > self._rolls_above_ms and self._is_roll_due(last_ms))\n",
        new="",
        killed_by=f"{_TESTS}test_a_batch_that_is_too_late_for_its_segment_begins_another",
    ),
    storage_rule(
        "a segment goes by its own first batch, and not by that of the one before",
        "log_appending.py",
        old="        self._rolls_above_ms = NOT_KNOWN_MS\n        self._index",
        new="        self._index",
        killed_by=f"{_TESTS}test_a_batch_that_is_too_late_for_its_segment_begins_another",
    ),
    storage_rule(
        "what a segment began with is forgotten when that is cut off",
        "log.py",
        old="        self._rolls_above_ms = NOT_KNOWN_MS\n",
        new="",
        killed_by=f"{_TESTS}test_a_segment_that_has_lost_its_first_batch_begins_with_another",
    ),
    storage_rule(
        "how old a segment becomes may change while it is written to",
        "log_state.py",
        old="        self._rolls_above_ms = NOT_KNOWN_MS\n        self._home",
        new="        self._home",
        killed_by=f"{_TESTS}test_a_setting_holds_for_the_segment_that_is_there",
    ),
    storage_rule(
        "an absurd timestamp begins one segment, and those behind it not one each",
        "retention.py",
        old=" <= modified_ms + _AHEAD_MS_MAX:",
        new=":",
        killed_by=f"{_TESTS}test_who_writes_microseconds_for_milliseconds_begins_one_segment"
        "_and_not_one_each",
    ),
    storage_rule(
        "a clock that is a little ahead is believed",
        "retention.py",
        old=" <= modified_ms + _AHEAD_MS_MAX:",
        new=" <= modified_ms:",
        killed_by=f"{_TESTS}test_a_clock_that_is_a_little_ahead_is_believed",
    ),
    storage_rule(
        "that nobody can tell how old a segment is refuses no append",
        "retention.py",
        old="    except OSError:\n        return _NEVER_MS\n",
        new="    except ValueError:\n        return _NEVER_MS\n",
        killed_by=f"{_TESTS}test_damage_where_a_segment_begins_refuses_no_append",
    ),
    storage_rule(
        "jitter leaves a segment some time",
        "retention.py",
        old="    jitter_ms = min(settings.segment_jitter_ms, settings.segment_ms)\n",
        new="    jitter_ms = settings.segment_jitter_ms\n",
        killed_by=f"{_TESTS}test_a_jitter_of_more_than_all_leaves_something",
    ),
    storage_rule(
        "each segment has a jitter of its own",
        "retention.py",
        old="crc32c(segment.path.encode()) % jitter_ms",
        new="jitter_ms // 2",
        killed_by=f"{_TESTS}test_jitter_keeps_logs_from_beginning_segments_all_at_once",
    ),
    Mutation(
        name="a run ends where its segment is too old",
        file="partitions/storage/log_appending.py",
        old="            and (last_ms <= self._rolls_above_ms or not self._is_roll_due(last_ms))\n",
        new="",
        killed_by="tests/broker/handlers/test_produce_runs.py"
        "::test_a_burst_ends_where_its_segment_is_too_old",
    ),
)
