"""What keeps requests for many partitions that are taken together from losing their order."""

from tests.mutations import Mutation

_BURSTS = "tests/broker/handlers/test_produce_bursts.py::"
_WORK = "broker/handlers/produce_work.py"
_OTHER = "test_a_burst_ends_before_a_request_that_asks_for_something_else"

MUTATIONS = (
    Mutation(
        name="to a partition its batches come in the order of the requests",
        file=_WORK,
        old="(name, data.index), []).append(batch)\n",
        new="(name, data.index), []).insert(0, batch)\n",
        killed_by=f"{_BURSTS}test_a_batch_that_is_sent_twice_in_one_burst_is_stored_once",
    ),
    Mutation(
        name="a burst is acknowledged once all its partitions are committed",
        file=_WORK,
        old="        if self._left == 0 and not self.pending.is_complete:\n",
        new="        if not self.pending.is_complete:\n",
        killed_by=f"{_BURSTS}test_only_the_partition_whose_leader_goes_is_refused",
    ),
    Mutation(
        name="who waits for one partition is not told of another",
        file="broker/replicas/waiters.py",
        old="        if self is NO_COMMIT_WAITERS:\n"
        "            return CommitWaiters().joined(end_offset, committed)\n",
        new="",
        killed_by="tests/broker/replicas/test_waiters.py"
        "::test_partitions_at_which_somebody_waits_share_nothing",
    ),
    Mutation(
        name="a partition's batches are committed once the last of them is",
        file=_WORK,
        old="Uncommitted(replica, index, end_offset, batches)",
        new="Uncommitted(replica, index, Offset(1), batches)",
        killed_by=f"{_BURSTS}test_a_burst_is_answered_once_all_its_partitions_are_committed",
    ),
    Mutation(
        name="the batches of a write that failed are refused",
        file=_WORK,
        old="        if error is not None:\n            for batch in appended:",
        new="        if error is not None and not done:\n            for batch in appended:",
        killed_by=f"{_BURSTS}test_a_write_that_fails_refuses_what_was_in_it_and_nothing_else",
    ),
    Mutation(
        name="each request of a burst is acknowledged as it asked",
        file="broker/handlers/produce_bursts.py",
        old="            or (request.acks, request.timeout_ms) != (like.acks, like.timeout_ms)\n",
        new="",
        killed_by=f"{_BURSTS}{_OTHER}",
    ),
    Mutation(
        name="nothing of a request is appended while it is held",
        file="broker/handlers/produce_bursts.py",
        old="            or _line_of_others(node, request, flowing) is not None\n",
        new="",
        killed_by=f"{_BURSTS}test_a_burst_ends_before_a_request_that_is_held_and_nothing_of_that_"
        "is_appended",
    ),
)
