"""What proves that the short way is as good as the long one: `partitions/raft/steady.py`, and what
keeps its promises beside it."""

from tests.mutations import Mutation


def _condition(name: str, *, old: str, new: str, killed_by: str) -> Mutation:
    """Of the core: dropped, the two ways differ in a scenario."""
    return Mutation(
        name=name,
        file="partitions/raft/steady.py",
        old=old,
        new=new,
        killed_by=f"tests/scenarios/{killed_by}",
    )


def _promise(name: str, file: str, *, old: str, new: str, killed_by: str) -> Mutation:
    """Of what the lane does around the core."""
    return Mutation(
        name=name,
        file=f"partitions/replication/{file}",
        old=old,
        new=new,
        killed_by=f"tests/partitions/replication/test_steady.py::{killed_by}",
    )


MUTATIONS = (
    _condition(
        "the short way fills no window twice",
        old=" and progress.bytes_in_flight < window_bytes:",
        new=":",
        killed_by="test_steady.py::test_what_does_not_fit_in_the_window_waits",
    ),
    _condition(
        "who is asked already keeps nobody from the short way",
        old="progress.wants(last) and progress.may_send(window_bytes)",
        new="progress.wants(last)",
        killed_by="test_steady.py::test_a_dead_follower_keeps_nobody_from_the_short_way",
    ),
    _condition(
        "who has to be told something else goes the long way",
        old="        if not progress.is_steady:\n",
        new="        if False:\n",
        killed_by="test_unclean.py::test_a_replica_counts_again_once_it_has_all_that_its_leader_had",
    ),
    _condition(
        "the start of an epoch goes the long way",
        old="if begin[0] != last[0] or after not in (None, begin):",
        new="if after not in (None, begin):",
        killed_by="test_divergence.py::test_logs_that_part_become_one",
    ),
    _condition(
        "one run for all is for followers at one place",
        old="if begin[0] != last[0] or after not in (None, begin):",
        new="if begin[0] != last[0]:",
        killed_by="test_steady.py::test_two_followers_that_lack_something_else_each_get_their_own",
    ),
    _condition(
        "what is below the log's start is not sent from memory",
        old="        if after[1] < group.shape.start_offset:\n            return None\n",
        new="",
        killed_by="test_steady.py::test_what_begins_below_the_log_start_is_not_sent_though_it_is_in_memory",
    ),
    _condition(
        "a run is taken where the log ends",
        old="        last[1] == prev\n        and last[0]",
        new="        last[0]",
        killed_by="test_steady.py::test_a_run_that_comes_out_of_turn_is_kept",
    ),
    _condition(
        "a run is of the newest epoch that is known",
        old="last[0] == epoch == group.epoch",
        new="last[0] == epoch",
        killed_by="test_steady.py::test_a_late_run_of_an_older_epoch_of_the_same_leader_is_not_taken",
    ),
    _condition(
        "a run follows an entry of its own epoch",
        old="last[0] == epoch == group.epoch",
        new="epoch == group.epoch",
        killed_by="test_steady.py::test_a_run_that_overtakes_the_start_of_its_epoch_is_not_taken",
    ),
    _condition(
        "a run is the leader's",
        old="        and group.leader == source\n",
        new="",
        killed_by="test_steady.py::test_a_run_of_somebody_else_than_the_leader_is_not_taken",
    ),
    _condition(
        "a run does not overtake what is not written yet",
        old="        and (not group.has_ready or group.is_quiet)\n",
        new="",
        killed_by="test_steady.py::test_what_comes_behind_something_that_is_not_written_yet_waits_for_it",
    ),
    _condition(
        "an answer by row is of one that has lost nothing",
        old="        and group.is_clean\n",
        new="",
        killed_by="test_steady.py::test_who_may_have_lost_something_does_not_answer_as_one_that_has_not",
    ),
    _condition(
        "only a follower takes runs",
        old="        and type(role) is Follower\n",
        new="",
        killed_by="test_steady.py::test_an_observer_is_not_taken_for_a_follower",
    ),
    _condition(
        "early arrivals are taken up on the long way",
        old="        and role.is_in_step\n",
        new="",
        killed_by="test_steady.py::test_a_run_that_comes_out_of_turn_is_kept",
    ),
    _condition(
        "news of the commit that came early are not forgotten",
        old="max(_position((group.epoch, committed)), role._leader_committed)",
        new="_position((group.epoch, committed))",
        killed_by="test_steady.py::test_news_of_the_commit_that_overtake_a_run_are_remembered",
    ),
    _condition(
        "a follower commits what it has",
        old="group.commit_to(min(heard, group.shape.last))",
        new="group.commit_to(heard)",
        killed_by="test_steady.py::test_a_follower_commits_no_more_than_it_has",
    ),
    _condition(
        "who leads no more counts no answers",
        old="    if type(role) is not Leader or epoch != group.epoch or role.successor",
        new="    if epoch != group.epoch or role.successor",
        killed_by="test_steady.py::test_an_answer_after_the_lead_was_given_up_counts_for_nothing",
    ),
    _condition(
        "an answer counts in its own epoch",
        old="type(role) is not Leader or epoch != group.epoch or role.successor is not None",
        new="type(role) is not Leader or role.successor is not None",
        killed_by="test_steady.py::test_an_answer_to_the_same_leaders_epoch_before_counts_for_nothing",
    ),
    _condition(
        "what a successor answers is looked at",
        old=" or role.successor is not None",
        new="",
        killed_by="test_steady.py::test_the_last_answer_lets_the_successor_know",
    ),
    _condition(
        "an answer of a stranger is not counted",
        old="progress is None or progress.held.clean_at is not None",
        new="progress.held.clean_at is not None",
        killed_by="test_steady.py::test_an_answer_of_a_stranger_counts_for_nothing",
    ),
    _condition(
        "who is to become clean answers on the long way",
        old="progress is None or progress.held.clean_at is not None",
        new="progress is None",
        killed_by="test_unclean.py::test_its_leader_counts_it_again_all_the_same",
    ),
    _condition(
        "an answer beyond the log is not believed",
        old="    if position != shape.last and not shape.contains(position):",
        new="    if False:",
        killed_by="test_steady.py::test_an_answer_about_what_the_leader_has_not_counts_for_nothing",
    ),
    _condition(
        "an answer opens the window",
        old="    if progress.wants(shape.last):\n        group.has_ready = True\n",
        new="",
        killed_by="test_steady.py::test_followers_that_are_not_at_the_same_place_get_what_each_lacks",
    ),
    _promise(
        "a follower answers once its run is durable",
        "steady_replica.py",
        old="        if syncs:\n"
        "            lane.stage(self, token, end, source, epoch, base)\n        else:",
        new="        if True:",
        killed_by="test_a_follower_answers_once_what_it_took_is_durable",
    ),
    _promise(
        "who has failed answers nothing",
        "steady_lane.py",
        old="            elif replica.failure is None:\n",
        new="            else:\n",
        killed_by="test_a_replica_that_has_failed_answers_nothing_any_more",
    ),
    _promise(
        "a row's run is checked, batch by batch",
        "checking.py",
        old="            if crc32c(view[at + ATTRIBUTES_AT : batch_end]) != crc:",
        new="            if False:",
        killed_by="test_a_run_that_is_not_what_its_row_says_is_refused",
    ),
    _promise(
        "a row's run ends where it says",
        "checking.py",
        old="    return list(map(_header, found)) if due == end and found else None",
        new="    return list(map(_header, found))",
        killed_by="test_a_run_that_is_not_what_its_row_says_is_refused",
    ),
    _promise(
        "a run that the journal does not take is synced where it lies",
        "group_log.py",
        old="            if len(records) < self.journaled_bytes_max:\n                record = ",
        new="            if True:\n                record = ",
        killed_by="test_a_run_larger_than_the_journal_takes_is_not_written_to_it",
    ),
    _promise(
        "what the journal is given is nobody else's to write over",
        "group_log.py",
        old="journal.batches(self.key, bytes(records))",
        new="journal.batches(self.key, records)",
        killed_by="test_what_is_kept_of_a_run_is_copied",
    ),
    _promise(
        "what goes the long way is nobody else's to write over",
        "steady_lane.py",
        old="message(bytes(records))",
        new="message(records)",
        killed_by="test_what_is_kept_of_a_run_is_copied",
    ),
    _promise(
        "a run that is sent from a file begins where its row says",
        "group_log.py",
        old=" or read_header(found.peek(HEADER_BYTES)).base_offset != base:",
        new=":",
        killed_by="test_a_batch_that_begins_earlier_is_not_sent_from_a_file",
    ),
    _promise(
        "who has got entries on the long way need not say that it is open",
        "steady_lane.py",
        old="                self._met(replica)\n",
        new="",
        killed_by="test_the_lane_changes_nothing_but_the_messages",
    ),
    _promise(
        "who lacks what is committed is told so, and not with entries that may be far behind",
        "news.py",
        old="            told = {*to}.intersection(group.holding(group.committed))\n",
        new="            told = {*to}\n",
        killed_by="test_who_lacks_what_is_committed_hears_of_it_by_heartbeat",
    ),
    _promise(
        "who gets no entries is told how far a group is committed",
        "news.py",
        old="            if told.issuperset(self._audience(replica)):\n",
        new="            if told:\n",
        killed_by="test_an_observer_hears_what_is_committed_by_heartbeat",
    ),
    _promise(
        "a replica that was given up is found no more",
        "node_groups.py",
        old="            self._lane.remove(replica)\n",
        new="            pass\n",
        killed_by="test_a_replica_that_was_given_up_and_opened_again_is_found",
    ),
)
