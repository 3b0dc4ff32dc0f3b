"""What keeps a moved leader's producers from losing records, doubling them, or waiting for ever."""

from tests.mutations import Mutation

_MOVES = "tests/partitions/replication/test_moves.py::"
_HELD = "tests/broker/network/test_held.py::"
_PRODUCE = "tests/broker/handlers/test_produce_held.py::"
_WISHES = "tests/broker/moves/"


MUTATIONS = (
    # The leader's part
    Mutation(
        name="what was appended before the pause is committed before the lead is given away",
        file="partitions/replication/moves.py",
        old="progress is None or group.committed != group.shape.last:",
        new="progress is None:",
        killed_by=f"{_MOVES}test_the_lead_is_not_given_away_for_what_only_the_target_holds_for_"
        "certain",
    ),
    Mutation(
        name="nor while producers wait for more replicas than committed it",
        file="partitions/replication/moves.py",
        old="        elif move.replica.is_awaited():\n",
        new="        elif False:\n",
        killed_by=f"{_MOVES}test_the_lead_is_not_given_away_while_producers_wait_for_more_than_a_"
        "majority",
    ),
    Mutation(
        name="a move looks at every answer, also where nothing else comes of it",
        file="partitions/replication/node.py",
        old="                self.dirty.update(self.moves.replicas)\n",
        new="                pass\n",
        killed_by=f"{_MOVES}test_the_targets_answer_is_enough_though_all_was_committed_without_it",
    ),
    Mutation(
        name="nothing is appended while writes are held",
        file="partitions/replication/replica_state.py",
        old="not self.is_paused and self.failure is None",
        new="self.failure is None",
        killed_by=f"{_MOVES}test_writes_are_held_while_the_move_pauses_and_taken_again_when_it_fails",
    ),
    Mutation(
        name="writes are not held for longer than the pause may last",
        file="partitions/replication/moves.py",
        old="elif move.is_paused and now >= move.paused_at + self.timing.pause_seconds:",
        new="elif False:",
        killed_by=f"{_MOVES}test_writes_flow_between_two_attempts",
    ),
    Mutation(
        name="who was to be given the lead, and was not elected, is not waited for",
        file="partitions/replication/moves.py",
        old="            replica.tell(Group.abort_hand_over)\n",
        new="            pass\n",
        killed_by=f"{_MOVES}test_writes_flow_as_soon_as_a_target_was_not_elected_in_time",
    ),
    Mutation(
        name="a node whose time passes looks at its moves",
        file="partitions/replication/node.py",
        old="        self.moves.tick(now)\n",
        new="",
        killed_by=f"{_MOVES}test_writes_are_held_while_the_move_pauses_and_taken_again_when_it_fails",
    ),
    Mutation(
        name="a node wakes up for its moves",
        file="partitions/replication/node.py",
        old="            deadline = min(deadline, self.moves.next_deadline())\n",
        new="            pass\n",
        killed_by=f"{_MOVES}test_a_pause_ends_in_time_however_little_else_happens",
    ),
    Mutation(
        name="who has voted in an epoch that nobody leads yet leaves it to the candidate",
        file="partitions/replication/campaigns.py",
        old="after_seconds=self._wait_for_votes_seconds(replica),",
        new="after_seconds=0.0,",
        killed_by=f"{_MOVES}test_an_election_that_takes_its_time_is_left_to_the_one_whom_it_is_for",
    ),
    Mutation(
        name="a leader that stands again waits longer for the votes",
        file="partitions/replication/campaigns.py",
        old="(_STANDS_AGAIN if stands_again else 1)",
        new="1",
        killed_by=f"{_MOVES}test_a_change_of_voters_is_not_given_up_while_slow_disks_store_the_votes",
    ),
    # Requests that are held
    Mutation(
        name="a held request goes on once",
        file="broker/replicas/held.py",
        old="        for waiter in waiting:\n            self._forget(waiter)\n",
        new="",
        killed_by=f"{_HELD}test_those_who_wait_go_on_once_in_the_order_of_their_coming",
    ),
    Mutation(
        name="held requests keep their order",
        file="broker/replicas/held.py",
        old="        waiting = list(self.waiting)\n",
        new="        waiting = list(reversed(self.waiting))\n",
        killed_by=f"{_HELD}test_those_who_wait_go_on_once_in_the_order_of_their_coming",
    ),
    Mutation(
        name="a held request is answered some time",
        file="broker/replicas/held.py",
        old="        if self._timer is None:\n",
        new="        if False:\n",
        killed_by=f"{_HELD}test_nobody_waits_longer_than_the_pause_may_last",
    ),
    Mutation(
        name="nothing is read behind a held request",
        file="broker/network/connection.py",
        old="            and self._line is None\n",
        new="",
        killed_by=f"{_HELD}test_what_a_held_client_sends_meanwhile_stays_in_the_sockets",
    ),
    Mutation(
        name="a held request comes again",
        file="broker/network/connection.py",
        old="            received.put_back(frames)\n",
        new="            pass\n",
        killed_by=f"{_HELD}test_a_held_request_and_what_follows_it_are_taken_in_order",
    ),
    Mutation(
        name="a connection that is gone is not waited with",
        file="broker/network/connection.py",
        old="            self._line.leave(self)\n",
        new="",
        killed_by=f"{_HELD}test_a_client_that_dies_takes_its_held_request_with_it",
    ),
    Mutation(
        name="nothing of a held request is appended",
        file="broker/handlers/produce.py",
        old="        _check_not_held(node, request, context.session)\n"
        "        if request.transactional_id is not None:\n"
        "            node.verifier.check_known(request, context.api_version)\n"
        "        responses = work.append([request])\n",
        new="        responses = work.append([request])\n"
        "        _check_not_held(node, request, context.session)\n",
        killed_by=f"{_PRODUCE}test_a_request_with_one_held_partition_is_held_as_a_whole",
    ),
    Mutation(
        name="nobody overtakes those whose requests are held",
        file="broker/replicas/replica_state.py",
        old="        return self._must_hold or bool(self.line)\n",
        new="        return self._must_hold\n",
        killed_by=f"{_PRODUCE}test_who_comes_once_writes_flow_again_does_not_overtake_those_who_"
        "waited",
    ),
    Mutation(
        name="nor by a request of a kind that is not decoded",
        file="broker/replicas/replica_writes.py",
        old="        if member is None or self.line.waiting:\n",
        new="        if member is None:\n",
        killed_by=f"{_PRODUCE}test_who_comes_once_writes_flow_again_does_not_overtake_those_who_"
        "waited",
    ),
    Mutation(
        name="held requests go on when writes flow again",
        file="broker/replicas/replica.py",
        old="        if self.line and not self._must_hold:\n            self.line.release()\n",
        new="",
        killed_by=f"{_PRODUCE}test_the_line_moves_on_when_the_group_says_so",
    ),
    # Wishes
    Mutation(
        name="a wish for a partition is one at a time",
        file="partitions/state_machines/cluster_wishes.py",
        old="            if move.id in self._moves or move.id in added:\n",
        new="            if False:\n",
        killed_by="tests/partitions/state_machines/test_cluster_wishes.py::"
        "test_two_moves_of_one_leader_are_one_too_many",
    ),
    Mutation(
        name="an outcome is said until it is noted",
        file="broker/moves/executor.py",
        old="                    await trio.sleep(_AGAIN_SECONDS)\n",
        new="                    self._outcomes.clear()\n                    await trio.sleep(0)\n",
        killed_by=f"{_WISHES}test_executor.py::test_outcomes_are_said_until_they_are_noted",
    ),
    Mutation(
        name="a leader that lost the lead leaves the wish to the next",
        file="broker/moves/executor.py",
        old="            if each.ending is not Ending.LEFT:\n",
        new="            if True:\n",
        killed_by=f"{_WISHES}test_executor.py::"
        "test_a_leader_that_lost_the_lead_leaves_the_wish_to_the_next",
    ),
    Mutation(
        name="a wish that nobody answers for is struck",
        file="broker/moves/sweeping.py",
        old="        if now_ms >= wish.deadline_ms + GRACE_MS:\n",
        new="        if False:\n",
        killed_by=f"{_WISHES}test_outcomes.py::"
        "test_a_wish_that_nobody_answers_for_is_struck_after_its_deadline",
    ),
    Mutation(
        name="of several words about a wish the first one counts",
        file="broker/moves/outcomes.py",
        old="                self._known.setdefault("
        "Wish(each.id, each.target, each.deadline_ms), each)\n",
        new="                self._known[Wish(each.id, each.target, each.deadline_ms)] = each\n",
        killed_by=f"{_WISHES}test_outcomes.py::test_who_waits_hears_the_first_word_of_several",
    ),
)
