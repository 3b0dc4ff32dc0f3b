"""What keeps a transaction whole, and late requests out of the next one."""

from tests.mutations import Room

_rule = Room("partitions/state_machines/transactions").rule


MUTATIONS = (
    _rule(
        "one change of an id at a time",
        "shard.py",
        old="        if held.unstored is not None:\n            return Decision(",
        new="        if False:\n            return Decision(",
        killed_by="test_waiting.py::TestWhoWaits::test_one_change_at_a_time",
    ),
    _rule(
        "a decision is answered once it is durable",
        "shard.py",
        old="        if not is_final:\n            effects",
        new="        is_final = False\n        if True:\n            effects",
        killed_by="test_transactions.py::TestATransaction::"
        "test_the_decision_is_answered_when_it_is_durable_and_not_before",
    ),
    _rule(
        "the end is written once all have their marker",
        "shard.py",
        old="if value is None or held.unmarked or held.unstored is not None:",
        new="if value is None or held.unstored is not None:",
        killed_by="test_waiting.py::TestWhoWaits::test_the_next_one_waits_until_all_have_their_marker",
    ),
    _rule(
        "a report about markers is of the end that is going on",
        "shard.py",
        old="or not _is_of(markers, held.value):",
        new="or False:",
        killed_by="test_failures.py::TestAnotherCoordinator::test_a_report_about_markers_before_says_nothing_of_these",
    ),
    _rule(
        "a new coordinator sends the markers again",
        "shard.py",
        old="            if value.partitions:\n                effects.markers.append",
        new="            if held.deadline_ms:\n                effects.markers.append",
        killed_by="test_failures.py::TestAnotherCoordinator::test_it_carries_out_what_was_decided",
    ),
    _rule(
        "a fence raises the epoch",
        "decisions.py",
        old="raises_epoch=old.epoch < EPOCH_MAX,",
        new="raises_epoch=False,",
        killed_by="test_time.py::TestTime::"
        "test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced",
    ),
    _rule(
        "an end raises the epoch for a client that bumps",
        "decisions.py",
        old="raises_epoch=request.bumps_epoch,",
        new="raises_epoch=False,",
        killed_by="test_transactions.py::TestEpochs::"
        "test_a_late_request_of_a_transaction_before_is_fenced_where_ends_bump",
    ),
    _rule(
        "an abort of nothing raises it too",
        "decisions.py",
        old="    if request.bumps_epoch and not request.is_commit:\n        return _end(",
        new="    if False:\n        return _end(",
        killed_by="test_transactions.py::TestEpochs::"
        "test_an_abort_of_nothing_raises_the_epoch_for_what_may_still_be_late",
    ),
    _rule(
        "an abort of nothing waits for the transaction before",
        "decisions.py",
        old="has_to_wait = request.bumps_epoch or old.state.is_commit == request.is_commit",
        new="has_to_wait = old.state.is_commit == request.is_commit",
        killed_by="test_transactions.py::TestEpochs::test_an_abort_of_nothing_waits_for_the_transaction_before",
    ),
    _rule(
        "an older epoch is fenced",
        "decisions.py",
        old="return ErrorCode.NONE if is_current else ErrorCode.PRODUCER_FENCED",
        new="return ErrorCode.NONE",
        killed_by="test_transactions.py::TestASession::"
        "test_the_next_session_gets_the_next_epoch_and_fences_the_one_before",
    ),
    _rule(
        "a zombie does not go on",
        "decisions.py",
        old="and not is_retry and not _is_current(old, request):",
        new="and False:",
        killed_by="test_transactions.py::TestASession::test_a_zombie_does_not_go_on",
    ),
    _rule(
        "nothing is verified once the transaction is decided",
        "decisions.py",
        old="request.partitions - (old.partitions if is_open else frozenset()))",
        new="request.partitions - request.partitions)",
        killed_by="test_transactions.py::TestVerifying::test_a_late_batch_is_in_no_transaction_once_its_own_is_over",
    ),
    _rule(
        "a decision is not taken back",
        "decisions.py",
        old="        old.state.is_commit == request.is_commit and not request.bumps_epoch\n",
        new="        True\n",
        killed_by="test_transactions.py::TestATransaction::test_a_decision_cannot_be_taken_back",
    ),
    _rule(
        "whether an end raises the epoch is its own matter",
        "transitions.py",
        old="        bumps_epoch=bumps_epoch,\n    )\n\n\ndef completed",
        new="    )\n\n\ndef completed",
        killed_by="test_transactions.py::TestEpochs::test_its_end_says_whether_a_transaction_raises_the_epoch",
    ),
    _rule(
        "who commits what was aborted is fenced",
        "decisions.py",
        old="ErrorCode.PRODUCER_FENCED if request.is_commit else ErrorCode.INVALID_TXN_STATE",
        new="ErrorCode.INVALID_TXN_STATE",
        killed_by="test_time.py::TestTime::test_a_commit_that_comes_too_late_hears_that_its_producer_is_fenced",
    ),
    _rule(
        "the last epoch is given to nobody",
        "decisions.py",
        old="    if old.epoch < EPOCH_MAX:\n        return Decision(_producer(old))\n",
        new="    if True:\n        return Decision(_producer(old))\n",
        killed_by="test_transactions.py::TestEpochs::"
        "test_who_aborts_what_the_last_one_has_ended_goes_on_with_a_new_producer_id",
    ),
    _rule(
        "nobody produces in the last epoch",
        "decisions.py",
        old="old.epoch == request.epoch < EPOCH_MAX",
        new="old.epoch == request.epoch",
        killed_by="test_transactions.py::TestEpochs::test_nobody_produces_in_the_last_one",
    ),
)
