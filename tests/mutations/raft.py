"""Raft's rules: each of them has lost somebody's data, or a cluster's night."""

from tests.mutations import Mutation


def rule(name: str, file: str, *, old: str, new: str, killed_by: str) -> Mutation:
    """A mutation of the core, killed by a scenario."""
    return Mutation(
        name=name,
        file=f"partitions/raft/{file}",
        old=old,
        new=new,
        killed_by=f"tests/scenarios/{killed_by}",
    )


MUTATIONS = (
    Mutation(
        name="what is sent next is never before what is there",
        file="partitions/raft/progress.py",
        old="        if self.next < held.match:  #",
        new="        if is_news and self.next < held.match:  #",
        killed_by="tests/partitions/raft/test_progress.py"
        "::test_what_is_sent_next_does_not_go_back_behind_what_is_known_to_be_there",
    ),
    Mutation(
        name="who says that it is in doubt counts anew, whatever its leader takes for ended",
        file="partitions/raft/held.py",
        old="        elif self.clean_at is None:  # it has not heard yet",
        new="        elif False:  # it has not heard yet",
        killed_by="tests/partitions/raft/test_progress.py"
        "::test_a_doubt_that_has_not_ended_where_it_is_is_not_over",
    ),
    Mutation(
        name="what precedes a new beginning is written before it",
        file="partitions/raft/replica.py",
        old=" is not None or self._reset is not None:\n"
        "            self._sealed += (self._close(),)\n",
        new=" is not None or self._reset is not None:\n            pass\n",
        killed_by="tests/partitions/raft/test_replica.py"
        "::test_a_new_beginning_comes_after_what_was_to_be_written_before_it",
    ),
    Mutation(
        name="of two that say that they lead, the one that is followed says what is committed",
        file="partitions/raft/group.py",
        old="        if not self._accept_leader(leader):\n            return\n"
        "        if isinstance(self.role, Follower):\n            self.role.hear_committed",
        new="        self._accept_leader(leader)\n"
        "        if isinstance(self.role, Follower):\n            self.role.hear_committed",
        killed_by="tests/scenarios/test_steady.py"
        "::test_a_heartbeat_of_somebody_else_than_the_leader_commits_nothing",
    ),
    # Votes
    rule(
        "a replica votes once in an epoch",
        "voting.py",
        old="        and group.voted_for in (None, source)\n",
        new="",
        killed_by="test_elections.py::test_a_durable_vote_is_remembered_after_a_crash",
    ),
    rule(
        "a vote is durable before it is given",
        "voting.py",
        old="    group.answer(source, VoteResponse(",
        new="    group.send(source, VoteResponse(",
        killed_by="test_elections.py::test_a_vote_that_was_not_durable_was_not_given",
    ),
    rule(
        "votes go only to logs that are as far",
        "voting.py",
        old="        and group.leader in (None, source)\n"
        "        and request.last >= group.shape.last\n",
        new="        and group.leader in (None, source)\n",
        killed_by="test_elections.py::test_a_longer_log_of_an_older_epoch_loses",
    ),
    rule(
        "the epoch of a log comes before its length",
        "voting.py",
        old="        and group.leader in (None, source)\n"
        "        and request.last >= group.shape.last\n",
        new="        and group.leader in (None, source)\n"
        "        and request.last[::-1] >= group.shape.last[::-1]\n",
        killed_by="test_elections.py::test_a_longer_log_of_an_older_epoch_loses",
    ),
    rule(
        "voters that hear a leader refuse others",
        "voting.py",
        old="        and group.hears_leader(source)\n",
        new="        and False\n",
        killed_by="test_elections.py::test_voters_that_hear_a_leader_refuse_others",
    ),
    rule(
        "a leader that asks for votes is none any more",
        "replica.py",
        old="leader is not None and leader != besides and",
        new="leader is not None and",
        killed_by="test_elections.py::test_a_leader_that_asks_for_votes_is_no_leader_any_more",
    ),
    rule(
        "a migration's votes do not mind that a leader is heard",
        "voting.py",
        old="        request.ballot is not Ballot.MIGRATION\n        and ",
        new="        ",
        killed_by="test_hand_over.py::test_a_pre_vote_does_not_stop_it",
    ),
    rule(
        "a leader speaks to one that asks for votes",
        "voting.py",
        old="    group.peer_reset(source)\n",
        new="",
        killed_by="test_elections.py::test_a_leader_speaks_to_one_that_asks_for_votes",
    ),
    rule(
        "a pre-vote comes first",
        "group.py",
        old="        self.leader = None\n        self.role = PreCandidate()\n"
        "        self.has_ready = True\n        self.role.start(self)\n",
        new="        self.stand(Ballot.REAL)\n",
        killed_by="test_elections.py::test_a_replica_that_was_cut_off_disturbs_nobody",
    ),
    rule(
        "who has lost the voters from sight does not lead",
        "candidate.py",
        old="        if not group.config.agreed(group.peers.is_alive):\n",
        new="        if False:\n",
        killed_by="test_elections.py::test_who_has_lost_the_voters_from_sight_is_elected_in_vain",
    ),
    rule(
        "a vote of an older epoch does not count",
        "candidate.py",
        old="        if response.ballot is Ballot.PRE or response.epoch != group.epoch:",
        new="        if response.ballot is Ballot.PRE:",
        killed_by="test_elections.py::test_a_stale_vote_is_not_counted_in_a_later_epoch",
    ),
    rule(
        "a yes to the pre-vote is no vote",
        "candidate.py",
        old="        if response.ballot is Ballot.PRE or response.epoch != group.epoch:",
        new="        if response.epoch != group.epoch:",
        killed_by="test_elections.py::test_a_yes_to_the_pre_vote_is_no_vote",
    ),
    rule(
        "a candidate's own vote is durable before it asks",
        "candidate.py",
        old="            group.send_after(voter, self._request(group))",
        new="            group.send(voter, self._request(group))",
        killed_by="test_elections.py::test_a_candidate_asks_only_once_its_own_vote_is_durable",
    ),
    rule(
        "a candidate follows the leader of its own epoch",
        "group.py",
        old="        if not isinstance(self.role, Observer | Follower):\n"
        "            self.role = Follower()",
        new="        if isinstance(self.role, Leader):\n            self.role = Follower()",
        killed_by="test_elections.py::test_a_candidate_that_hears_of_a_leader_follows_it",
    ),
    rule(
        "a leader without a live majority steps down",
        "leader.py",
        old="        if not group.config.agreed(group.peers.is_alive):\n",
        new="        if False:\n",
        killed_by="test_elections.py::test_a_leader_that_hears_no_majority_steps_down",
    ),
    # What is committed
    rule(
        "only an entry of the own epoch is committed by counting",
        "leader.py",
        old="        if held > group.committed and held.epoch == group.epoch:",
        new="        if held > group.committed:",
        killed_by="test_commit.py::"
        "test_figure_8_an_entry_of_an_older_epoch_is_not_committed_by_counting",
    ),
    rule(
        "half is no majority",
        "quorum.py",
        old="    held = _held(group, followers, config.voters, len(config.voters) // 2 + 1)",
        new="    held = _held(group, followers, config.voters, (len(config.voters) + 1) // 2)",
        killed_by="test_commit.py::test_half_is_no_majority",
    ),
    rule(
        "a leader counts itself only for what it holds durably",
        "quorum.py",
        old="NOWHERE if group.in_doubt else group.durable",
        new="NOWHERE if group.in_doubt else group.shape.last",
        killed_by="test_commit.py::test_a_leader_does_not_count_what_it_has_not_synced_itself",
    ),
    rule(
        "a follower acknowledges only what is durable",
        "follower.py",
        old="matched), holds=matched)",
        new="matched))",
        killed_by="test_commit.py::test_a_follower_acknowledges_only_what_it_has_synced",
    ),
    rule(
        "an acknowledgement of an older epoch does not count",
        "group.py",
        old="                elif message.epoch < self.epoch:\n"
        '                    mark("stale_answer")\n'
        "                elif isinstance",
        new="                elif isinstance",
        killed_by="test_commit.py::test_an_acknowledgement_of_an_older_epoch_does_not_count",
    ),
    rule(
        "a follower commits no further than it has compared",
        "follower.py",
        old="        verified = last if last.epoch == group.epoch else matched",
        new="        verified = last",
        killed_by="test_commit.py::test_a_follower_commits_no_further_than_it_has_compared",
    ),
    rule(
        "a heartbeat commits only what is of the leader's epoch",
        "follower.py",
        old="        if last.epoch == group.epoch:  # then",
        new="        if True:  # then",
        killed_by="test_commit.py::test_a_follower_commits_no_further_than_it_has_compared",
    ),
    rule(
        "a new leader serves only once its own epoch is committed",
        "replica.py",
        old="        return self.leader == self.node_id and self.committed.epoch == self.epoch",
        new="        return self.leader == self.node_id",
        killed_by="test_commit.py::test_a_new_leader_serves_only_once_its_own_epoch_is_committed",
    ),
    rule(
        "what is durable at once waits for what precedes it",
        "replica.py",
        old="            if self._tokens:  # durable as soon as what precedes it is",
        new="            if False:",
        killed_by="test_commit.py::test_durable_writes_wait_for_what_precedes_them",
    ),
    rule(
        "a truncation takes the old tokens back",
        "replica.py",
        old="        if self._tokens and self._tokens[-1][1] > to:",
        new="        if False:",
        killed_by="test_replication.py::"
        "test_what_was_cut_and_written_anew_is_not_durable_by_the_old_token",
    ),
    # Replication
    rule(
        "an append is compared before it is taken",
        "follower.py",
        old="        if not group.holds(request.prev):",
        new="        if False:",
        killed_by="test_divergence.py::test_logs_that_part_become_one",
    ),
    rule(
        "entries that are held are not cut",
        "follower.py",
        old="            if group.holds(entry.position):\n"
        "                matched = entry.position\n"
        "                continue\n",
        new="",
        killed_by="test_replication.py::test_an_old_epoch_start_does_not_cut_what_follows",
    ),
    rule(
        "a part of a run that is held is not cut",
        "follower.py",
        old="isinstance(entry, Run) and held.epoch == entry.epoch and held > matched:",
        new="False:",
        killed_by="test_replication.py::"
        "test_a_run_that_is_cut_otherwise_the_second_time_is_taken_from_where_it_is_new",
    ),
    rule(
        "what is committed is never cut",
        "follower.py",
        old="                if matched < group.committed:\n"
        "                    group.fail(matched)\n"
        "                    return\n",
        new="",
        killed_by="test_replication.py::test_committed_entries_are_never_cut",
    ),
    rule(
        "entries that do not follow each other are not taken",
        "follower.py",
        old="        if not follow_each_other(request.prev, entries, group.epoch):",
        new="        if False:",
        killed_by="test_replication.py::test_entries_that_do_not_follow_each_other_are_not_taken",
    ),
    rule(
        "early arrivals are bounded",
        "follower.py",
        old="        while self._early_bytes > group.limits.early_bytes_max:",
        new="        while False:",
        killed_by="test_replication.py::test_early_arrivals_are_bounded",
    ),
    rule(
        "only a refusal of the first in flight says something",
        "progress.py",
        old="        if self._sent_after != prev or conflict >= prev:",
        new="        if conflict >= prev:",
        killed_by="test_replication.py::test_a_refusal_says_something_only_of_the_first_in_flight",
    ),
    rule(
        "a refusal never moves next below match",
        "held.py",
        old="        if common >= self.match:\n",
        new="        if True:\n",
        killed_by="test_replication.py::"
        "test_a_late_refusal_of_what_is_matched_by_now_is_not_believed",
    ),
    rule(
        "a refusal that leads nowhere is not followed",
        "progress.py",
        old="        if common >= prev:\n",
        new="        if False:\n",
        killed_by="test_replication.py::test_a_refusal_that_leads_nowhere_is_not_followed",
    ),
    rule(
        "a place that is in no log is not committed",
        "replica.py",
        old="            if not self.shape.contains(position):\n",
        new="            if False:\n",
        killed_by="test_replication.py::test_a_place_that_is_in_no_log_is_not_committed",
    ),
    rule(
        "the window bounds what is in flight",
        "progress.py",
        old="        return self.bytes_in_flight < window_bytes",
        new="        return True",
        killed_by="test_replication.py::test_requests_go_out_without_waiting_for_answers",
    ),
    rule(
        "a leader finds the common point by the follower's epochs",
        "progress.py",
        old="conflict if shape.contains(conflict) else shape.floor(conflict.epoch)",
        new="conflict",
        killed_by="test_divergence.py::test_logs_that_part_become_one",
    ),
    rule(
        "an answer that claims too much is not believed",
        "leader.py",
        old="            if not shape.contains(match) and match > shape.start:",
        new="            if False:",
        killed_by="test_replication.py::"
        "test_an_answer_that_claims_what_was_never_sent_is_not_believed",
    ),
    rule(
        "a request of an older epoch is refused",
        "group.py",
        old='        if request.epoch < self.epoch:\n            mark("stale_request")',
        new='        if False:\n            mark("stale_request")',
        killed_by="test_replication.py::test_a_zombie_leader_is_refused_and_told",
    ),
    rule(
        "a late reset does not cut what came after it",
        "follower.py",
        old="        elif is_table_of(request) and is_beyond_committed(group, start):\n",
        new="        if is_table_of(request):\n",
        killed_by="test_resets.py::test_a_late_reset_does_not_cut_what_came_after_it",
    ),
)
