"""What keeps requests that are appended together from losing, doubling or misreporting records."""

from tests.mutations import Mutation

_RUNS = "tests/broker/handlers/test_produce_runs.py::"
_OF_PRODUCERS = "tests/partitions/state_machines/test_producers.py::"
_ONE_PRODUCER = f"{_OF_PRODUCERS}test_a_run_is_of_one_producer_and_in_no_transaction"

MUTATIONS = (
    Mutation(
        name="a run ends before a batch that is not what comes next",
        file="partitions/state_machines/producers.py",
        old="                if in_epoch != epoch or first != sequence:\n",
        new="                if in_epoch != epoch:\n",
        killed_by=f"{_RUNS}test_a_batch_that_is_sent_twice_in_one_burst_is_stored_once",
    ),
    Mutation(
        name="a run begins with what comes next",
        file="partitions/state_machines/producers.py",
        old="            and producer.next_sequence == first\n",
        new="",
        killed_by=f"{_RUNS}test_a_batch_that_is_sent_twice_in_one_burst_is_stored_once",
    ),
    Mutation(
        name="a run is of one producer",
        file="partitions/state_machines/producers.py",
        old="            if of != producer_id or attributes",
        new="            if attributes",
        killed_by=_ONE_PRODUCER,
    ),
    Mutation(
        name="a batch in a transaction is in no run",
        file="partitions/state_machines/producers.py",
        old=" or attributes & NOT_PLAIN:\n                break",
        new=":\n                break",
        killed_by=_ONE_PRODUCER,
    ),
    Mutation(
        name="nor is one that comes by itself",
        file="partitions/state_machines/producers.py",
        old="        if attributes & NOT_PLAIN:\n            return False\n",
        new="",
        killed_by=_ONE_PRODUCER,
    ),
    Mutation(
        name="who was forgotten is not taken for who was heard last",
        file="partitions/state_machines/producers.py",
        old="        self._newest, self._newest_id = _NO_PRODUCER, _NOBODY\n"
        "        self.awaited = None\n",
        new="",
        killed_by=f"{_OF_PRODUCERS}test_who_was_forgotten_is_awaited_no_more",
    ),
    Mutation(
        name="who is heard again stands last",
        file="partitions/state_machines/producers.py",
        old="            self._heard(producer_id, self._producers[producer_id])\n"
        "        producer = self._newest\n        # As",
        new="            pass\n        producer = self._producers[producer_id]\n        # As",
        killed_by=f"{_OF_PRODUCERS}test_taking_in_what_was_awaited_is_appending_it",
    ),
    Mutation(
        name="of a batch by itself that could not be written the next ones are told",
        file="broker/replicas/replica_writes.py",
        old="            self.refused(records, refusal)\n            log_start = ",
        new="            log_start = ",
        killed_by=f"{_RUNS}test_what_must_follow_a_refused_batch_is_looked_at_one_by_one",
    ),
    Mutation(
        name="nor is one of a producer that has a transaction open",
        file="partitions/state_machines/producers.py",
        old="            and producer_id not in self.transactions.opened\n        )\n",
        new="        )\n",
        killed_by=_ONE_PRODUCER,
    ),
    Mutation(
        name="whatever else is done about a producer nothing is awaited before it is asked",
        file="partitions/state_machines/producers.py",
        old="awaited sets it anew.\n        self.awaited = None\n",
        new="awaited sets it anew.\n",
        killed_by=f"{_OF_PRODUCERS}test_nothing_is_awaited_of_who_has_a_transaction_open",
    ),
    Mutation(
        name="what was cut is not what something follows",
        file="partitions/state_machines/producers.py",
        old="        self.transactions.forget_from(offset)\n        self.awaited = None\n",
        new="        self.transactions.forget_from(offset)\n",
        killed_by=f"{_OF_PRODUCERS}test_after_a_cut_what_was_cut_comes_next",
    ),
    Mutation(
        name="what is in a transaction is not taken for what is awaited",
        file="partitions/replication/appending.py",
        old=" or attributes & NOT_PLAIN\n            ) and",
        new="\n            ) and",
        killed_by="tests/partitions/replication/test_solo.py"
        "::test_a_batch_in_a_transaction_is_not_simply_what_comes_next",
    ),
    Mutation(
        name="the batches of a run are remembered one by one",
        file="partitions/state_machines/producers.py",
        old="            kept.append((sequence, last, offset, last_offset, timestamp_ms))\n",
        new="            kept.append((sequence, last, base_offset, last_offset, timestamp_ms))\n",
        killed_by=f"{_RUNS}test_after_a_burst_the_last_five_are_known_again",
    ),
    Mutation(
        name="what is refused ends a run",
        file="broker/replicas/replica_writes.py",
        old="            pass  # What is wrong with it is said when it comes first.\n",
        new="            headers.append(read_header(records))\n",
        killed_by=f"{_RUNS}test_what_is_refused_is_refused_alone_and_its_neighbours_are_not",
    ),
    Mutation(
        name="the batches of a failed write are refused",
        file="broker/replicas/replica_writes.py",
        old=", stamp, member.log.start_offset, False, refusal\n",
        new=", stamp, member.log.start_offset, True, None\n",
        killed_by=f"{_RUNS}test_a_write_that_fails_refuses_what_was_in_it_and_nothing_else",
    ),
    Mutation(
        name="who follows them is not out of order",
        file="broker/replicas/replica_writes.py",
        old="            for records in batches:\n                self.refused(records, refusal)\n",
        new="",
        killed_by=f"{_RUNS}test_a_write_that_fails_refuses_what_was_in_it_and_nothing_else",
    ),
    Mutation(
        name="a run of which not all was written leaves nothing",
        file="partitions/storage/log_appending.py",
        old="        except OSError:\n            self._cut_back(writer)\n            raise\n",
        new="        except OSError:\n            raise\n",
        killed_by="tests/partitions/storage/test_disk_full.py::test_of_a_run_that_does_not_fit_"
        "nothing_is_left_and_the_next_is_as_if_it_had_not_been",
    ),
    Mutation(
        name="a run is acknowledged once all of it is committed",
        file="broker/handlers/produce_runs.py",
        old="    return count, _RunWait(asked, replica, end_offset).pending\n",
        new="    return count, _RunWait(asked, replica, base_offsets[0]).pending\n",
        killed_by=f"{_RUNS}test_a_burst_waits_for_its_commit_and_is_answered_at_once",
    ),
    Mutation(
        name="a run that has to be waited for is answered by itself",
        file="broker/handlers/produce_runs.py",
        old="    must_commit = is_for_all and not is_first\n",
        new="    must_commit = False\n",
        killed_by=f"{_RUNS}test_what_has_to_be_waited_for_holds_up_nothing_that_came_before_it",
    ),
    Mutation(
        name="a batch of millions of records is not looked into",
        file="broker/replicas/admission.py",
        old="    if header.record_count > _LOOKED_INTO_MAX:\n",
        new="    if False:\n",
        killed_by="tests/broker/handlers/test_produce_refusals.py"
        "::test_a_batch_of_millions_of_records_is_not_looked_into_for_keys",
    ),
    Mutation(
        name="a largest timestamp that a producer has left out is put in",
        file="broker/replicas/admission.py",
        old="    if max_ms < base_ms and not config.stamps_append_time:\n",
        new="    if False:\n",
        killed_by="tests/broker/handlers/test_largest_times.py"
        "::test_their_records_are_found_by_time[0]",
    ),
    Mutation(
        name="a record without a key is seen in passing",
        file="protocol/records/skimming.py",
        old="            if not has_key:\n",
        new="            if False:\n",
        killed_by="tests/protocol/records/test_skimming.py"
        "::test_keys_and_times_are_those_of_the_records",
    ),
    Mutation(
        name="a request whose acks are refused is not known by its first bytes",
        file="broker/handlers/produce.py",
        old="        is_refused = request.acks not in _ACKS\n",
        new="        is_refused = False\n",
        killed_by="tests/broker/handlers/test_produce_known.py"
        "::test_what_no_producer_may_ask_for_is_refused_again",
    ),
    Mutation(
        name="a run is for one partition",
        file="protocol/one_batch.py",
        old="            if partition != last or bytes_left < 0:\n",
        new="            if last is None or bytes_left < 0:\n",
        killed_by=f"{_RUNS}test_partitions_that_take_turns_keep_the_order_of_their_requests",
    ),
    Mutation(
        name="a run ends where its segment does",
        file="partitions/replication/appending.py",
        old="                headers = headers[:1]\n",
        new="                pass\n",
        killed_by=f"{_RUNS}test_a_burst_ends_where_its_segment_does",
    ),
    Mutation(
        name="each request of a run counts among the unanswered",
        file="broker/network/connection.py",
        old="        self._owed += count\n",
        new="        self._owed += 1\n",
        killed_by="tests/broker/network/test_connection.py::"
        "test_each_request_of_a_run_counts_among_the_unanswered",
    ),
)
