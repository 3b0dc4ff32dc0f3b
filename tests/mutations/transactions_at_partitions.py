"""What keeps transactions right at the partitions: markers, what is stable, late batches."""

from tests.mutations import Mutation

_MACHINES = "partitions/state_machines"
_OF_TABLE = f"tests/{_MACHINES}/test_producers_transactions.py"
_OF_LOGS = "tests/partitions/replication/test_transactions_in_logs.py"
_OF_REPLICAS = "tests/partitions/replication/test_transactions.py"
_OF_OPEN = f"tests/{_MACHINES}/test_open_transactions.py"
_OF_READERS = "tests/broker/handlers/test_transactions.py"
_OF_VERIFYING = "tests/broker/handlers/test_verifying.py"

MUTATIONS = (
    # Who may end a transaction
    Mutation(
        name="a former coordinator ends nothing",
        file=f"{_MACHINES}/producers.py",
        old="if marker.coordinator_epoch < producer.coordinator_epoch:",
        new="if False:",
        killed_by=f"{_OF_TABLE}::test_a_marker_of_a_former_coordinator_is_refused",
    ),
    Mutation(
        name="a marker of another coordinator is written though it ends nothing",
        file=f"{_MACHINES}/producers.py",
        old="        return is_open or not is_known\n",
        new="        return is_open\n",
        killed_by=f"{_OF_TABLE}"
        "::test_another_coordinators_marker_is_written_though_it_changes_nothing_else",
    ),
    Mutation(
        name="a late marker ends no later transaction",
        file=f"{_MACHINES}/producers.py",
        old="if is_open and raises_epoch and epoch == producer.epoch:",
        new="if False:",
        killed_by=f"{_OF_TABLE}"
        "::test_a_late_marker_ends_no_later_transaction_of_a_producer_that_bumps",
    ),
    Mutation(
        name="who has a transaction open does not expire",
        file=f"{_MACHINES}/producers.py",
        old=" and producer_id not in opened\n        ]",
        new="\n        ]",
        killed_by=f"{_OF_TABLE}::test_who_has_a_transaction_open_does_not_expire",
    ),
    Mutation(
        name="a batch in no transaction does not go into an open one",
        file=f"{_MACHINES}/producers.py",
        old="        if opened and header.producer_id in opened and",
        new="        if False and",
        killed_by=f"{_OF_TABLE}::test_a_batch_in_no_transaction_does_not_go_into_the_one_that_is_open",
    ),
    Mutation(
        name="a coordinator writes into no transaction of a fenced producer",
        file="partitions/replication/appending.py",
        old="                producers.table.check_epoch(producer_id, header.producer_epoch)\n",
        new="                pass\n",
        killed_by=f"{_OF_READERS}::test_a_coordinator_writes_for_no_producer_that_is_fenced",
    ),
    # What is open, stable and aborted
    Mutation(
        name="what is open is not stable",
        file=f"{_MACHINES}/open_transactions.py",
        old="        begun = [] if oldest is None else [oldest.first_offset]\n",
        new="        begun: list[Offset] = []\n",
        killed_by=f"{_OF_OPEN}::test_below_the_last_stable_offset_all_is_decided_and_committed",
    ),
    Mutation(
        name="what was decided is stable only once that is committed",
        file=f"{_MACHINES}/open_transactions.py",
        old="*begun, *(over.first_offset for over in self._unstable)])",
        new="*begun])",
        killed_by=f"{_OF_OPEN}::test_below_the_last_stable_offset_all_is_decided_and_committed",
    ),
    Mutation(
        name="readers are told of all that were aborted where they read",
        file=f"{_MACHINES}/open_transactions.py",
        old="self._aborted[first : last + 1]",
        new="self._aborted[first:last]",
        killed_by=f"{_OF_OPEN}::test_the_last_that_a_reader_is_told_of_may_end_far_behind",
    ),
    Mutation(
        name="an abort that the log has lost did not happen",
        file=f"{_MACHINES}/open_transactions.py",
        old="        found += self.opened.items()\n",
        new="        found = [*self.opened.items()]\n",
        killed_by=f"{_OF_OPEN}::test_an_abort_that_the_log_has_lost_did_not_happen",
    ),
    # The table follows its log
    Mutation(
        name="a marker is told from other batches when a log is opened",
        file="partitions/replication/opening.py",
        old="        on_control=producers.on_control,\n",
        new="",
        killed_by=f"{_OF_REPLICAS}::test_who_leads_after_a_loss_of_power_knows_what_was_aborted",
    ),
    Mutation(
        name="followers in step read markers",
        file="partitions/replication/group_log.py",
        old="                self.producers.on_control_within(header, records,",
        new="                print(header, records,",
        killed_by=f"{_OF_REPLICAS}::test_every_replica_knows_what_is_open_and_what_was_aborted",
    ),
    Mutation(
        name="markers are looked at again when a log was cut",
        file="partitions/storage/derived_state.py",
        old="        if header.attributes & CONTROL_BIT and self.on_control is not None:\n",
        new="        if False and self.on_control is not None:\n",
        killed_by=f"{_OF_REPLICAS}::test_a_log_whose_end_was_cut_tells_its_markers_again",
    ),
    Mutation(
        name="what is aborted below the start is forgotten",
        file="partitions/replication/producer_state.py",
        old="        self.table.transactions.trim(log_start)\n",
        new="        pass\n",
        killed_by=f"{_OF_REPLICAS}::test_what_was_aborted_below_the_start_is_forgotten",
    ),
    Mutation(
        name="a damaged marker is not guessed",
        file="protocol/records/records.py",
        old="    check_crc(data, header, at)\n    section",
        new="    section",
        killed_by=f"{_OF_LOGS}::test_a_marker_whose_bytes_are_damaged_is_not_guessed",
    ),
    # Readers
    Mutation(
        name="readers of committed transactions stop at what is open",
        file="broker/replicas/replica_reads.py",
        old="return self.last_stable_offset if isolation == READ_COMMITTED else",
        new="return self.high_watermark if True else",
        killed_by=f"{_OF_READERS}::test_readers_of_committed_transactions_stop_where_one_is_open",
    ),
    Mutation(
        name="a start that moves into an open transaction moves what is stable",
        file="broker/replicas/replica_state.py",
        old="        return max(stable, member.log_start)\n",
        new="        return stable\n",
        killed_by=f"{_OF_READERS}"
        "::test_a_start_that_moved_into_an_open_transaction_does_not_hide_the_partition",
    ),
    # Late batches
    Mutation(
        name="the first batch of a transaction is asked about",
        file="broker/replicas/replica_writes.py",
        old="            self.check_verified(header, api_version)\n",
        new="            pass\n",
        killed_by=f"{_OF_VERIFYING}::test_what_is_in_no_open_transaction_is_refused",
    ),
    Mutation(
        name="a marker makes answers from before it worth nothing",
        file="broker/replicas/replica_transactions.py",
        old="        self.verifications.forget(producer_id)\n        self._services",
        new="        self._services",
        killed_by=f"{_OF_VERIFYING}"
        "::test_a_late_batch_does_not_come_in_by_an_answer_from_before_the_marker",
    ),
    Mutation(
        name="a producer's epochs are asked about apart",
        file="partitions/state_machines/verifications.py",
        old="        self._asked.pop((producer_id, epoch), None)\n        if len",
        new="        self.forget(producer_id)\n        if len",
        killed_by=f"{_OF_VERIFYING}::test_epochs_that_wait_side_by_side_each_find_their_answer",
    ),
    Mutation(
        name="a new epoch is asked about though another has a transaction open",
        file="broker/replicas/replica_transactions.py",
        old="        return known != epoch or producer_id not in",
        new="        return producer_id not in",
        killed_by=f"{_OF_VERIFYING}"
        "::test_a_new_epoch_is_asked_about_though_the_old_one_has_a_transaction_open",
    ),
    Mutation(
        name="an answer holds for one leadership",
        file="broker/replicas/replica.py",
        old="                self._verifications = None\n",
        new="",
        killed_by=f"{_OF_VERIFYING}::test_an_answer_holds_for_one_leadership",
    ),
    Mutation(
        name="older clients put partitions in by themselves",
        file="broker/replicas/verifying.py",
        old="verify_only=not who.adds,",
        new="verify_only=False,",
        killed_by=f"{_OF_VERIFYING}::test_only_the_first_batch_of_a_transaction_is_asked_about",
    ),
    Mutation(
        name="a busy coordinator is asked again",
        file="broker/replicas/verifying.py",
        old="error is not None and error.code in _RETRIED",
        new="False",
        killed_by=f"{_OF_VERIFYING}::test_a_coordinator_that_is_busy_or_gone_is_asked_again",
    ),
    Mutation(
        name="a marker waits while writes are held",
        file="broker/handlers/write_txn_markers.py",
        old="            if replica.is_holding:\n",
        new="            if False:\n",
        killed_by=f"{_OF_READERS}"
        "::test_a_marker_waits_while_writes_are_held_and_others_do_not_wait_for_it",
    ),
    Mutation(
        name="a marker is answered once it is committed",
        file="broker/handlers/write_txn_markers.py",
        old="        self._left += 1\n"
        "        replica.when_committed(end_offset, partial(self._known, place, outcomes))\n",
        new="        del end_offset\n",
        killed_by=f"{_OF_READERS}::test_a_marker_is_answered_once_it_is_committed",
    ),
)
