"""One story for each anomaly, and the same story without it."""

import pytest

from tests.testing.checkers.histories import PARTITION, Story
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers import Kind, Poll, Polled, check
from tidemark.testing.checkers.counts import counts


def kinds(story: Story, *, reads_are_final: bool = True, may_jump: bool = False) -> list[Kind]:
    found = check(story.history, reads_are_final=reads_are_final, may_jump=may_jump)
    return [anomaly.kind for anomaly in found]


def test_a_history_in_which_all_went_well_has_no_anomaly() -> None:
    story = Story().sent("p", "ant", "bee", at=[0, 1]).sent("q", "cat", at=[2])
    story.polled("c", (0, "ant")).polled("c", (1, "bee"), (2, "cat")).polled("d", (0, "ant"))
    assert kinds(story) == []


def test_an_empty_history_has_no_anomaly() -> None:
    assert kinds(Story()) == []


def test_a_record_that_everybody_passed_over_is_a_lost_write() -> None:
    story = Story().sent("p", "ant", at=[0]).sent("p", "bee", at=[1]).sent("p", "cat", at=[2])
    story.polled("c", (0, "ant"), (2, "cat"))
    assert kinds(story) == [Kind.LOST_WRITE, Kind.INT_POLL_SKIP]
    assert kinds(story.polled("d", (1, "bee"))) == [Kind.INT_POLL_SKIP]


def test_a_lost_write_needs_no_final_reads() -> None:
    story = Story().sent("p", "ant", at=[0]).sent("q", "bee", at=[1]).polled("c", (1, "bee"))
    assert kinds(story, reads_are_final=False) == [Kind.LOST_WRITE]


def test_an_acknowledged_record_at_the_end_that_nobody_polled_is_unseen() -> None:
    story = Story().sent("p", "ant", at=[0]).polled("c", (0, "ant")).sent("p", "bee", at=[1])
    assert kinds(story) == [Kind.UNSEEN]
    assert kinds(story, reads_are_final=False) == []


def test_an_acknowledged_record_without_an_offset_must_be_seen_too() -> None:
    story = Story().sent("p", "ant")
    assert kinds(story) == [Kind.UNSEEN]
    assert kinds(story.polled("c", (0, "ant"))) == []


def test_a_record_of_unknown_outcome_may_be_seen_or_not() -> None:
    story = Story().timed_out("p", "ant").timed_out("p", "bee").polled("c", (0, "bee"))
    assert kinds(story) == []


def test_a_polled_record_whose_send_failed_is_an_aborted_read() -> None:
    story = Story().failed("p", "ant")
    assert kinds(story) == []
    assert kinds(story.polled("c", (0, "ant"))) == [Kind.ABORTED_READ]


def test_a_record_that_nobody_sent_is_a_phantom() -> None:
    assert kinds(Story().polled("c", (0, "ant"))) == [Kind.PHANTOM]


def test_a_value_at_two_offsets_is_a_duplicate() -> None:
    story = Story().sent("p", "ant", at=[0]).polled("c", (0, "ant"), (1, "ant"))
    assert kinds(story) == [Kind.DUPLICATE]


def test_a_record_acknowledged_at_another_offset_than_it_has_is_a_duplicate() -> None:
    story = Story().sent("p", "ant", at=[0]).timed_out("q", "bee")
    story.polled("c", (0, "bee"), (1, "ant"))
    assert kinds(story) == [Kind.DUPLICATE, Kind.INCONSISTENT_OFFSETS]


def test_two_readers_that_see_different_values_at_an_offset_are_inconsistent() -> None:
    story = Story().timed_out("p", "ant").timed_out("q", "bee")
    story.polled("c", (0, "ant")).polled("d", (0, "bee"))
    assert kinds(story) == [Kind.INCONSISTENT_OFFSETS]


def test_an_offset_given_to_two_producers_is_reused() -> None:
    story = Story().sent("p", "ant", at=[0], started=0, ended=9)
    story.sent("q", "bee", at=[0], started=0, ended=9)
    story.polled("c", (0, "bee"))
    assert kinds(story) == [Kind.LOST_WRITE, Kind.INCONSISTENT_OFFSETS, Kind.OFFSET_REUSED]


def test_a_producer_whose_later_send_lies_before_is_nonmonotonic() -> None:
    # Both were under way at once, so only the producer's own order speaks against it.
    story = Story().sent("p", "ant", at=[1], started=0, ended=9)
    story.sent("p", "bee", at=[0], started=1, ended=9)
    assert kinds(story.polled("c", (0, "bee"), (1, "ant"))) == [Kind.NONMONOTONIC_SEND]


def test_two_producers_under_way_at_once_may_get_any_order() -> None:
    story = Story().sent("p", "ant", at=[1], started=0, ended=9)
    story.sent("q", "bee", at=[0], started=1, ended=9)
    assert kinds(story.polled("c", (0, "bee"), (1, "ant"))) == []


def test_a_batch_out_of_order_is_internally_nonmonotonic() -> None:
    story = Story().sent("p", "ant", "bee", at=[1, 0]).polled("c", (0, "bee"), (1, "ant"))
    assert kinds(story) == [Kind.INT_NONMONOTONIC_SEND]


def test_a_consumer_that_goes_back_is_nonmonotonic() -> None:
    story = Story().sent("p", "ant", "bee", at=[0, 1])
    story.polled("c", (0, "ant"), (1, "bee")).polled("c", (1, "bee"))
    assert kinds(story) == [Kind.NONMONOTONIC_POLL]
    assert kinds(story, may_jump=True) == []


def test_a_consumer_that_seeks_may_go_anywhere() -> None:
    story = Story().sent("p", "ant", "bee", "cat", at=[0, 1, 2])
    story.polled("c", (0, "ant"), (1, "bee")).polled("c", (0, "ant"), sought=True)
    assert kinds(story.polled("c", (2, "cat"), sought=True)) == []


def test_a_poll_that_goes_back_in_itself_is_internally_nonmonotonic() -> None:
    story = Story().sent("p", "ant", "bee", at=[0, 1]).polled("c", (1, "bee"), (0, "ant"))
    assert kinds(story) == [Kind.INT_NONMONOTONIC_POLL]
    assert kinds(story, may_jump=True) == [Kind.INT_NONMONOTONIC_POLL]


def test_a_consumer_that_leaves_out_a_known_record_skips() -> None:
    story = Story().sent("p", "ant", "bee", "cat", at=[0, 1, 2])
    story.polled("c", (0, "ant")).polled("c", (2, "cat")).polled("d", (1, "bee"))
    assert kinds(story) == [Kind.POLL_SKIP]
    assert kinds(story, may_jump=True) == []


def test_offsets_without_a_record_are_not_skipped() -> None:
    story = Story().sent("p", "ant", at=[0]).sent("p", "bee", at=[7])
    assert kinds(story.polled("c", (0, "ant"), (7, "bee"))) == []


def test_a_poll_that_leaves_out_a_known_record_skips_internally() -> None:
    story = Story().sent("p", "ant", "bee", "cat", at=[0, 1, 2])
    story.polled("c", (0, "ant"), (2, "cat")).polled("d", (1, "bee"))
    assert kinds(story) == [Kind.INT_POLL_SKIP]


def test_a_send_that_began_after_an_acknowledgement_lies_behind_it() -> None:
    story = Story().sent("p", "ant", at=[1]).sent("q", "bee", at=[0])
    assert kinds(story.polled("c", (0, "bee"), (1, "ant"))) == [Kind.REAL_TIME_ORDER]


def test_a_send_that_began_after_a_poll_lies_behind_what_was_polled() -> None:
    story = Story().timed_out("p", "ant").polled("c", (1, "ant")).sent("q", "bee", at=[0])
    assert kinds(story.polled("d", (0, "bee"))) == [Kind.REAL_TIME_ORDER]


def test_one_producers_records_of_a_key_keep_their_order_though_unacknowledged() -> None:
    story = Story().timed_out("p", "ant", key="k").timed_out("p", "bee", key="k")
    assert kinds(story.polled("c", (0, "bee"), (1, "ant"))) == [Kind.KEY_ORDER]


def test_records_of_two_keys_or_two_producers_have_no_order() -> None:
    story = Story().timed_out("p", "ant", key="k").timed_out("p", "bee", key="l")
    story.timed_out("q", "cat", key="k")
    assert kinds(story.polled("c", (0, "cat"), (1, "bee"), (2, "ant"))) == []


def test_a_watermark_never_goes_back_within_an_epoch() -> None:
    assert kinds(Story().told(5, epoch=1).told(5, epoch=1).told(6, epoch=1)) == []
    assert kinds(Story().told(5, epoch=1).told(4, epoch=1)) == [Kind.WATERMARK_REGRESSION]


def test_a_leader_that_was_replaced_may_still_tell_its_own_watermark() -> None:
    assert kinds(Story().told(7, epoch=2).told(5, epoch=1)) == []


def test_a_later_epoch_never_has_a_lower_watermark() -> None:
    assert kinds(Story().told(7, epoch=1).told(6, epoch=2)) == [Kind.WATERMARK_REGRESSION]
    # Though nobody asked the two leaders in that order.
    assert kinds(Story().told(6, epoch=2).told(7, epoch=1)) == [Kind.WATERMARK_REGRESSION]


def test_partitions_are_judged_apart() -> None:
    story = Story().sent("p", "ant", at=[0]).polled("c", (0, "ant"))
    other = Polled(TopicPartition("words", 1), Offset(0), "ant")
    story.history.polls.append(Poll(client="c", started=9, ended=9, records=(other,)))
    (anomaly,) = check(story.history)
    assert str(anomaly) == "phantom in words-1: c polled 'ant' at 0, which nobody sent"


@pytest.mark.parametrize("may_repeat", [True, False])
def test_readers_get_each_record_once(may_repeat: bool) -> None:
    story = Story().sent("p", "ant", "bee", at=[0, 1]).timed_out("p", "cat")
    story.polled("c", (0, "ant")).polled("d", (1, "bee"))
    assert list(counts(story.history, {"c", "d"}, may_repeat=may_repeat)) == []
    (never,) = counts(story.history, {"c"}, may_repeat=may_repeat)
    assert never.kind is Kind.COUNT
    assert "'bee'" in never.what
    story.polled("d", (0, "ant"), sought=True)
    assert len(list(counts(story.history, {"c", "d"}, may_repeat=may_repeat))) == (not may_repeat)


def test_the_partition_of_an_anomaly_is_named() -> None:
    (anomaly,) = check(Story().polled("c", (0, "ant")).history)
    assert anomaly.partition == PARTITION
