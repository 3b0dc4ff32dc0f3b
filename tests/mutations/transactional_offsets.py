"""Offsets in transactions: what keeps them aside, and the same after a restart."""

from tests.mutations import Mutation

_TESTS = "tests/partitions/state_machines/groups/test_transactional_offsets.py"


def _rule(name: str, file: str, *, old: str, new: str, killed_by: str) -> Mutation:
    return Mutation(
        name=name,
        file=f"partitions/state_machines/groups/{file}",
        old=old,
        new=new,
        killed_by=f"{_TESTS}::{killed_by}",
    )


MUTATIONS = (
    _rule(
        "an offset in a transaction counts only once that is committed",
        "offsets.py",
        old="            if producer_id is not None:\n                assert value is not None",
        new="            if producer_id == -7:\n                assert value is not None",
        killed_by="TestKeptAside"
        "::test_an_offset_counts_when_its_transaction_is_committed_and_not_before",
    ),
    _rule(
        "an aborted transaction's offsets are dropped",
        "undecided.py",
        old="        if not is_commit:\n            return []\n",
        new="",
        killed_by="TestKeptAside::test_an_aborted_one_leaves_what_was_there",
    ),
    _rule(
        "an offset of a transaction on its way to the log is unstable",
        "offsets.py",
        old="self._transactional_in_flight.begin(group_id, partition)",
        new="self._transactional_in_flight.begin(group_id + '-', partition)",
        killed_by="TestKeptAside"
        "::test_one_that_is_on_its_way_to_the_log_makes_offsets_unstable_already",
    ),
    _rule(
        "a commit outside transactions supersedes those before it",
        "undecided.py",
        old="        self._supersede(key, self._next)\n",
        new="        self._supersede(key, 0)\n",
        killed_by="TestOfOneKeyTheLastRecordCounts"
        "::test_a_commit_outside_is_not_undone_by_a_transaction_before_it",
    ),
    _rule(
        "a committed transaction supersedes those whose records lie before its own",
        "undecided.py",
        old="            self._supersede(key, place)\n",
        new="            self._supersede(key, 0)\n",
        killed_by="TestOfOneKeyTheLastRecordCounts"
        "::test_nor_is_that_of_a_later_transaction_that_was_decided_first",
    ),
    _rule(
        "only a client that names no member passes by the group's generation",
        "commits.py",
        old="    return is_nobody and request.generation < 0\n",
        new="    return True\n",
        killed_by="TestWhoMay::test_not_one_of_an_old_generation",
    ),
    _rule(
        "what a transaction may replace does not expire",
        "retention.py",
        old="        and not offsets.is_unstable(group.id, partition)\n",
        new="",
        killed_by="TestTime::test_an_offset_that_a_transaction_may_replace_does_not_expire",
    ),
    _rule(
        "deletion knows of offsets in transactions",
        "offsets.py",
        old="*self._undecided.partitions(group_id)}",
        new="}",
        killed_by="TestTime::test_a_deleted_topic_comes_back_without_them",
    ),
)
