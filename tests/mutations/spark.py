"""What keeps a Spark query from losing rows or having them twice."""

from tests.mutations import Mutation

_BATCH = "client/spark/batch.py"
_STREAM = "client/spark/stream.py"
_DRIVER = "client/spark/driver.py"
_TASK = "client/spark/task.py"
_RANGES = "client/spark/ranges.py"
_PREPARED = "client/spark/prepared.py"
_SINK = "client/spark/sink.py"
_COLUMNS = "client/columns/reading.py"
_GRIDS = "protocol/records/columns/grids.py"
_GUESS = "protocol/records/columns/guess.py"
_BUFFERS = "protocol/buffers.py"
_OF_STREAMS = "tests/client/spark/test_stream.py::"
_OF_READERS = "tests/client/spark/test_readers.py::"
_OF_RANGES = "tests/client/spark/test_ranges.py::"
_OF_ONCE = "tests/client/spark/test_exactly_once.py::"

MUTATIONS = (
    Mutation(
        name="a batch's ends are all of one moment",
        file=_BATCH,
        old="            ending = ends\n",
        new="            ending = driver.ends(partitions)\n",
        killed_by=_OF_READERS + "test_a_batch_ends_where_the_log_did_when_that_was_asked_first",
    ),
    Mutation(
        name="a stream's start is asked for once",
        file=_STREAM,
        old="        if self._initial is None:",
        new="        if True:",
        killed_by=_OF_STREAMS + "test_the_initial_offset_is_the_same_each_time_it_is_asked_for",
    ),
    Mutation(
        name="the end of the first batch says where it begins",
        file=_STREAM,
        old="{_FROM: to_json(from_json(start)), **end} if _INITIAL in start else end",
        new="end",
        killed_by=_OF_STREAMS
        + "test_the_first_batch_begins_where_it_began_though_spark_asks_again",
    ),
    Mutation(
        name="the first batch begins where its end says",
        file=_STREAM,
        old="from_json(end.get(_FROM, start))",
        new="from_json(start)",
        killed_by=_OF_STREAMS
        + "test_the_first_batch_begins_where_it_began_though_spark_asks_again",
    ),
    Mutation(
        name="a first batch that was empty is empty when it is run again",
        file=_STREAM,
        old="        if start == end or _INITIAL in end:",
        new="        if start == end:",
        killed_by=_OF_STREAMS
        + "test_an_empty_first_batch_that_failed_is_still_empty_when_it_is_run_again",
    ),
    Mutation(
        name="equal offsets are the same text",
        file=_STREAM,
        old="    for tp in sorted(offsets):\n",
        new="    for tp in offsets:\n",
        killed_by=_OF_STREAMS + "test_offsets_are_the_same_text_in_whatever_order_they_come",
    ),
    Mutation(
        name="where nothing is new there is no batch",
        file=_STREAM,
        old="        if ends == from_json(start):\n            return start\n",
        new="",
        killed_by=_OF_STREAMS + "test_where_nothing_is_new_the_start_itself_comes_back",
    ),
    Mutation(
        name="a log that ends before the checkpoint is an error",
        file=_STREAM,
        old="        if planned.end < planned.start:",
        new="        if False:",
        killed_by=_OF_STREAMS + "test_lost_records_are_an_error[made anew-False]",
    ),
    Mutation(
        name="a log that begins after the checkpoint is an error",
        file=_STREAM,
        old="        elif planned.start < beginning:",
        new="        elif False:",
        killed_by=_OF_STREAMS + "test_lost_records_are_an_error[retention-False]",
    ),
    Mutation(
        name="a partition that is gone is an error",
        file=_STREAM,
        old="            if tp not in ends:",
        new="            if False:",
        killed_by=_OF_STREAMS + "test_a_partition_that_is_gone_is_an_error",
    ),
    Mutation(
        name="a log that ends before a batch that was planned is an error",
        file=_STREAM,
        old="        elif planned.size and end < planned.end:",
        new="        elif False:",
        killed_by=_OF_STREAMS
        + "test_a_planned_batch_that_the_log_has_not_any_more_is_an_error[made anew]",
    ),
    Mutation(
        name="a planned batch waits for nothing that the log does not have",
        file=_STREAM,
        old="min(planned.end, end))",
        new="planned.end)",
        killed_by=_OF_STREAMS + "test_what_the_log_has_of_a_planned_batch_is_read[made anew]",
    ),
    Mutation(
        name="a partition that is added is read from its beginning",
        file=_STREAM,
        old="        starts |= {tp: beginnings[tp] for tp in new}",
        new="        starts |= {tp: ends[tp] for tp in new}",
        killed_by=_OF_STREAMS + "test_a_partition_that_is_added_is_read_from_its_beginning",
    ),
    Mutation(
        name="a query over what there is has an end",
        file=_STREAM,
        old="        self._target = self._driver.recent_ends()",
        new="        self._target = None",
        killed_by=_OF_STREAMS + "test_available_now_stops_at_what_was_there",
    ),
    Mutation(
        name="a limit starves no partition",
        file=_RANGES,
        old="-(-size * rows_max // total)",
        new="size * rows_max // total",
        killed_by=_OF_RANGES + "test_a_limit_is_shared_out_and_leaves_no_partition_behind",
    ),
    Mutation(
        name="records that are lost are an error",
        file=_DRIVER,
        old="    if options.fail_on_data_loss:",
        new="    if False:",
        killed_by=_OF_READERS + "test_retention_after_planning_is_an_error_or_skipped",
    ),
    Mutation(
        name="offsets beyond the end are an error",
        file=_DRIVER,
        old="    if max(asked.start, asked.end) > end:",
        new="    if False:",
        killed_by=_OF_READERS
        + "test_offsets_that_the_log_never_had_are_an_error_or_left_out[ending]",
    ),
    Mutation(
        name="a task says what it could not read",
        file=_TASK,
        old='        report_loss(options, f"the records',
        new='        str(f"the records',
        killed_by=_OF_READERS + "test_retention_after_planning_is_an_error_or_skipped",
    ),
    Mutation(
        name="what was aborted is not read",
        file=_COLUMNS,
        old="    if not fetched.aborted:",
        new="    if True:",
        killed_by=_OF_READERS + "test_committed_transactions_are_read_and_aborted_ones_are_not",
    ),
    Mutation(
        name="memory that is looked into is not written over",
        file=_BUFFERS,
        old="    except BufferError:\n        return False\n",
        new="    except BufferError:\n        return True\n",
        killed_by="tests/protocol/test_buffers.py::test_what_somebody_looks_into_is_left_to_him",
    ),
    Mutation(
        name="one length stands for all only if all have it",
        file=_GRIDS,
        old="        for place in range(self.at, self.at + size):\n"
        "            self.check_same(place)\n",
        new="",
        killed_by="tests/protocol/records/test_columns_by_layout.py::"
        "test_records_of_one_length_whose_fields_differ_are_the_records",
    ),
    Mutation(
        name="what looks like records must lead from end to end",
        file=_GUESS,
        old="    if (expected != following).any() or (starts[bounds - counts] != begins).any():\n",
        new="    if False:\n",
        killed_by="tests/protocol/records/test_columns_by_layout.py::"
        "test_what_looks_like_a_record_does_not_stand_for_one_that_does_not",
    ),
    Mutation(
        name="a batch is noted before it is committed",
        file=_PREPARED,
        old="        _note(client, name, decision, text)\n",
        new="",
        killed_by=_OF_ONCE + "test_a_driver_that_died_after_it_decided_is_gone_on_for",
    ),
    Mutation(
        name="tasks of a decided batch write nothing",
        file=_SINK,
        old="    if decision is None:\n        return prepare_rows",
        new="    if True:\n        return prepare_rows",
        killed_by=_OF_ONCE + "test_a_driver_that_died_after_it_decided_is_gone_on_for",
    ),
    Mutation(
        name="what is decided is not aborted",
        file=_PREPARED,
        old="        if each.transaction in kept:\n            continue\n",
        new="",
        killed_by=_OF_ONCE + "test_a_driver_that_died_after_it_decided_is_gone_on_for",
    ),
    Mutation(
        name="a batch is decided only if all of it is there",
        file=_PREPARED,
        old="        check_open(client, transactions)\n",
        new="",
        killed_by=_OF_ONCE + "test_what_ran_out_before_it_was_decided_is_not_committed",
    ),
    Mutation(
        name="a part that ran out is an error",
        file=_PREPARED,
        old="            raise\n        return False\n",
        new="            raise\n        return True\n",
        killed_by=_OF_ONCE
        + "test_a_batch_of_which_a_part_ran_out_is_an_error_that_says_what_to_do",
    ),
    Mutation(
        name="a batch that ran out is not decided any more",
        file=_PREPARED,
        old='        _note(client, name, decision, "")\n',
        new="",
        killed_by=_OF_ONCE + "test_a_decided_batch_that_ran_out_is_written_anew",
    ),
)
