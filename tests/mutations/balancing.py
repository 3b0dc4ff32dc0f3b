"""Rules of the balancer: who is let be, what a move must bring, what must not be lost."""

from tests.mutations import Mutation

_TESTS = "tests/partitions/balancing"


def _rule(name: str, file: str, *, old: str, new: str, killed_by: str) -> Mutation:
    return Mutation(
        name=name,
        file=f"partitions/balancing/{file}",
        old=old,
        new=new,
        killed_by=f"{_TESTS}/{killed_by}",
    )


_LEADERS = "test_leaders.py"
_LET_BE = "test_let_be.py"
_FULL = "test_full_brokers.py"
_NO_TAKER = f"{_LET_BE}::test_a_broker_that_takes_no_leaders_says_why"
_NO_TARGET = f"{_LET_BE}::test_a_replica_that_cannot_lead_at_once_is_no_target"
_WRITTEN_OUT = "test_board.py::test_the_best_target_is_the_one_with_the_most_net_gain"

MUTATIONS = (
    # Who is let be
    _rule(
        "a dead broker takes no leaders",
        "eligibility.py",
        old="    if not broker.is_alive:\n        return No(",
        new="    if False:\n        return No(",
        killed_by=_NO_TAKER,
    ),
    _rule(
        "a drained broker takes no leaders",
        "eligibility.py",
        old="        return Role.EMPTIED\n",
        new="        return Role.TAKES\n",
        killed_by=_NO_TAKER,
    ),
    _rule(
        "a broker with a full disk takes no leaders",
        "eligibility.py",
        old="    if broker.is_full:\n",
        new="    if False:\n",
        killed_by=_NO_TAKER,
    ),
    _rule(
        "a broker whose disk stays full is emptied",
        "eligibility.py",
        old=" or _stays_full(broker, now_ms, settings):\n",
        new=":\n",
        killed_by=f"{_FULL}"
        "::test_leaders_leave_a_broker_whose_disk_stays_full_whatever_that_does_to_evenness",
    ),
    _rule(
        "a disk that is full for a moment moves nobody",
        "eligibility.py",
        old="    return since_ms is None or now_ms - since_ms >= patience_ms\n",
        new="    return True\n",
        killed_by=f"{_FULL}::test_a_disk_that_is_full_for_a_moment_moves_nobody",
    ),
    _rule(
        "who has room again is left alone for a while",
        "eligibility.py",
        old="        if room_ms < settings.room_grace_ms:\n",
        new="        if False:\n",
        killed_by=f"{_FULL}::test_a_broker_that_has_room_again_is_left_alone_for_a_while",
    ),
    _rule(
        "who has not told how its disk is takes no leaders",
        "eligibility.py",
        old="    if not broker.has_told:\n",
        new="    if False:\n",
        killed_by=f"{_FULL}::test_a_broker_that_has_not_told_how_its_disk_is_takes_no_leaders",
    ),
    _rule(
        "a drain is about drained brokers only",
        "settings.py",
        old="replace(self.without_waiting(), full_patience_ms=None)",
        new="self.without_waiting()",
        killed_by=f"{_FULL}::test_a_drain_leaves_the_leaders_of_another_brokers_full_disk_alone",
    ),
    _rule(
        "a broker that has just started is left alone",
        "eligibility.py",
        old="    if up_ms < settings.start_grace_ms:\n",
        new="    if False:\n",
        killed_by=_NO_TAKER,
    ),
    _rule(
        "only voters lead",
        "eligibility.py",
        old="    if node not in group.voters:\n        if node in group.learners:",
        new="    if node not in group.voters and node not in group.lags:\n"
        "        if node in group.learners:",
        killed_by="test_let_be.py::test_only_voters_lead",
    ),
    _rule(
        "who has not said how far it is does not lead",
        "eligibility.py",
        old="    lag = group.lags.get(node)\n",
        new="    lag = group.lags.get(node, 0)\n",
        killed_by=_NO_TARGET,
    ),
    _rule(
        "who is far behind does not lead",
        "eligibility.py",
        old="    if lag > settings.lag_records_max:\n",
        new="    if False:\n",
        killed_by=_NO_TARGET,
    ),
    _rule(
        "a group whose leader just changed is let be",
        "board.py",
        old="why_cooling(group, self.now_ms, settings) is None)",
        new="True)",
        killed_by=f"{_LET_BE}::test_a_group_whose_leader_just_changed_is_let_be",
    ),
    _rule(
        "a group in motion is let be",
        "board.py",
        old="                and why_in_motion(group) is None\n",
        new="",
        killed_by=f"{_LET_BE}::test_a_group_whose_replicas_change_is_let_be",
    ),
    _rule(
        "a group on the move counts where it goes to",
        "board.py",
        old="    node = group.leader if group.moving_to is None else group.moving_to\n",
        new="    node = group.leader\n",
        killed_by="test_let_be.py::test_a_group_on_the_move_counts_where_it_goes_to",
    ),
    _rule(
        "brokers that take nothing are no capacity",
        "board.py",
        old="if role is Role.TAKES]",
        new="]",
        killed_by="test_let_be.py::test_a_broker_that_takes_no_leaders_is_no_room_to_be_filled",
    ),
    _rule(
        "a broker is emptied without waiting for groups to cool down",
        "board.py",
        old="(is_forced or why_cooling",
        new="(why_cooling",
        killed_by="test_leaders.py::test_leaders_leave_a_broker_that_is_to_lead_nothing",
    ),
    _rule(
        "a broker is emptied though that costs evenness",
        "search.py",
        old="        self.empty()\n",
        new="",
        killed_by="test_leaders.py::test_leaders_leave_a_broker_that_is_to_lead_nothing",
    ),
    # What a move must bring
    _rule(
        "a move pays even if the rates were measured wrong",
        "board.py",
        old="        self._price = 2 * noise * (2 + noise) * settings.weights.rate\n",
        new="        self._price = 0.0\n",
        killed_by=f"{_LET_BE}::test_a_move_that_gains_too_little_says_so",
    ),
    _rule(
        "a trickle is no traffic",
        "board.py",
        old="        whole = max(whole, self.settings.quiet_bytes_per_s)\n",
        new="        whole = max(whole, 1e-9)\n",
        killed_by="test_leaders.py::test_a_trickle_moves_nobody",
    ),
    _rule(
        "moves that belong together pay together",
        "draft.py",
        old="        if net <= EPSILON:\n            return False\n",
        new="",
        killed_by=f"{_LEADERS}::test_two_that_change_places_must_pay_together",
    ),
    _rule(
        "leaders are spread by number",
        "tally.py",
        old="weights.count * (counts[source] - counts[target] - 1)\n            + weights.topic",
        new="weights.topic",
        killed_by=_WRITTEN_OUT,
    ),
    _rule(
        "one leader more is not moved to and fro",
        "board.py",
        old="weights.count * (counts[source] - 1) + weights.topic * (of_topic[source] - 1)",
        new="weights.count * counts[source] + weights.topic * of_topic[source]",
        killed_by="test_leaders.py::test_one_leader_more_than_another_broker_is_even",
    ),
    _rule(
        "leaving the preferred leader costs",
        "board.py",
        old="        elif preferred == source:\n            gain -= self._preferred_worth\n",
        new="",
        killed_by=_WRITTEN_OUT,
    ),
    # What single moves cannot do
    _rule(
        "leaders change places",
        "search.py",
        old="            self._swaps.take()\n",
        new="",
        killed_by=f"{_LEADERS}::test_topics_are_spread_by_changing_places_where_numbers_are_even_already",
    ),
    _rule(
        "leaders are passed on along chains",
        "search.py",
        old="            if not self._move_singly():\n                self._move_in_chains()\n",
        new="            self._move_singly()\n",
        killed_by=f"{_LEADERS}::test_leaders_are_passed_on_along_a_chain_of_brokers",
    ),
    _rule(
        "what the first moves have led to is looked at again",
        "search.py",
        old="                    self.board.is_open[shift.group] = True\n",
        new="                    pass\n",
        killed_by="test_leaders.py"
        "::test_three_hundred_leaders_on_one_of_three_brokers_end_a_hundred_each",
    ),
    _rule(
        "a group moves once",
        "search.py",
        old="        self._draft.steps = joined(self.steps)\n",
        new="",
        killed_by=f"{_LEADERS}::test_three_hundred_leaders_on_one_of_three_brokers_end_a_hundred_each",
    ),
    _rule(
        "groups of one topic change places without a loss to it",
        "swaps.py",
        old="        if board.noisy_rate_bound(one, other) > 0 or self._is_home(",
        new="        if False and self._is_home(",
        killed_by="test_leaders.py::test_traffic_is_spread_within_a_topic",
    ),
    # In flight
    _rule(
        "only so many are on the move",
        "search.py",
        old="        if self.bounds.left < 1 or free[",
        new="        if free[",
        killed_by=f"{_LET_BE}::test_only_so_many_leave_a_broker_that_is_emptied",
    ),
    _rule(
        "only so many come to a broker",
        "board.py",
        old="            if target == source or free[target] < 1:\n",
        new="            if target == source:\n",
        killed_by=f"{_LET_BE}::test_only_so_many_come_to_a_broker",
    ),
    _rule(
        "only so many leave a broker",
        "search.py",
        old=" or free[self.board.lead[group]] < 1:",
        new=":",
        killed_by=f"{_LET_BE}::test_only_so_many_leave_a_broker",
    ),
    _rule(
        "what is on the move already counts",
        "bounds.py",
        old="                self.left -= 1\n",
        new="                pass\n",
        killed_by=f"{_LET_BE}::test_only_so_many_are_on_the_move",
    ),
    _rule(
        "what is on the move already counts for its brokers",
        "bounds.py",
        old="                        self.of_broker[index[node]] -= 1\n",
        new="                        pass\n",
        killed_by=f"{_LET_BE}::test_only_so_many_leave_a_broker",
    ),
    _rule(
        "two that change places begin together or not at all",
        "bounds.py",
        old="            self.of_broker[broker] >= touched.count(broker) for broker in touched\n",
        new="            self.of_broker[broker] >= 1 for broker in touched\n",
        killed_by="test_let_be.py::test_two_of_a_step_begin_together_or_not_at_all",
    ),
    # The same for the same
    _rule(
        "the order of the groups means nothing",
        "snapshot.py",
        old="        groups = sorted(\n            self.groups, key=",
        new="        groups = list(self.groups)\n        sorted(\n            self.groups, key=",
        killed_by=f"{_LEADERS}::test_the_order_of_groups_and_brokers_means_nothing",
    ),
    _rule(
        "the order of the brokers means nothing",
        "snapshot.py",
        old="        brokers = sorted(self.brokers, key=lambda broker: broker.node_id)\n",
        new="        brokers = list(self.brokers)\n",
        killed_by=f"{_LEADERS}::test_the_order_of_groups_and_brokers_means_nothing",
    ),
    # By hand
    _rule(
        "a broker that a majority needs is not drained",
        "quorums.py",
        old='    return _short_of_majority(group, others, f"without broker {node} ")\n',
        new="    return None\n",
        killed_by="test_by_hand.py::test_draining_what_a_majority_needs_is_refused",
    ),
    _rule(
        "who is drained itself is no majority",
        "quorums.py",
        old="        if voter != node and brokers[voter].state is BrokerState.ACTIVE\n",
        new="        if voter != node\n",
        killed_by="test_by_hand.py::test_draining_two_of_three_is_refused",
    ),
    _rule(
        "who is dead is no majority",
        "quorums.py",
        old="        and brokers[voter].is_alive\n",
        new="",
        killed_by="test_by_hand.py::test_draining_two_of_three_is_refused",
    ),
    _rule(
        "half is no majority",
        "quorums.py",
        old="    needed = len(group.voters) // 2 + 1\n",
        new="    needed = (len(group.voters) + 1) // 2\n",
        killed_by="test_by_hand.py::test_draining_one_of_two_is_refused",
    ),
    _rule(
        "an only replica is not drained",
        "quorums.py",
        old="    if len(group.voters) == 1:\n",
        new="    if False:\n",
        killed_by="test_by_hand.py::test_draining_the_only_replica_is_refused",
    ),
    _rule(
        "draining moves nobody else's leaders",
        "by_hand.py",
        old="            board.is_forced[number] = False\n",
        new="            pass\n",
        killed_by="test_by_hand.py::test_draining_moves_nobody_elses_leaders",
    ),
    _rule(
        "leaders come home to the first replica that can lead",
        "by_hand.py",
        old="        if node == leader:\n",
        new="        if False:\n",
        killed_by="test_by_hand.py::test_where_the_preferred_leader_cannot_lead_the_next_one_does",
    ),
    # Replicas
    _rule(
        "replicas stand in as many racks as they can",
        "replicas.py",
        old="            self._beside(self._groups[number], source, node),\n",
        new="            0,\n",
        killed_by="test_replicas.py::test_a_replica_goes_to_a_rack_that_has_none",
    ),
    _rule(
        "no evenness is worth a crowded rack",
        "replicas.py",
        old="                and self._beside(group, source, other) <= beside\n",
        new="",
        killed_by="test_replicas.py::test_evenness_in_number_crowds_no_rack",
    ),
    _rule(
        "dead and drained brokers get no replicas",
        "replicas.py",
        old="    return broker.is_alive and not broker.is_full and broker.state is",
        new="    return True or broker.state is",
        killed_by="test_replicas.py::test_brokers_that_may_be_stopped_or_are_full_get_no_replicas",
    ),
    _rule(
        "a broker without which there are too few cannot leave",
        "replicas.py",
        old="            others = self.takers - group.holders\n",
        new="            others = self.takers - {node}\n",
        killed_by="test_replicas.py::test_with_too_few_brokers_it_cannot_leave",
    ),
    _rule(
        "who observes a group gets no other replica of it",
        "snapshot.py",
        old="        return frozenset({*self.replicas, *self.observers})\n",
        new="        return frozenset(self.replicas)\n",
        killed_by="test_replicas.py::test_who_observes_a_group_gets_no_other_replica_of_it",
    ),
    _rule(
        "a group without a majority is not changed",
        "quorums.py",
        old="    return why_in_motion(group) or _short_of_majority(group, _in_sync("
        'group, brokers, settings), "")\n',
        new="    return why_in_motion(group)\n",
        killed_by="test_replicas.py::test_a_group_without_a_majority_in_sync_cannot_be_changed",
    ),
    _rule(
        "bytes decide between brokers that hold equally many",
        "replicas.py",
        old="            self._bytes[node],\n            self._lots[node],\n",
        new="            self._lots[node],\n",
        killed_by="test_replicas.py::test_bytes_decide_between_brokers_that_hold_equally_many",
    ),
    _rule(
        "preferred leaders stay spread when replicas move",
        "replicas.py",
        old="            after.insert(0, first)\n",
        new="            after.append(first)\n",
        killed_by="test_replicas.py::test_who_takes_over_is_not_always_the_one_to_lead",
    ),
    _rule(
        "the last broker that takes leaders is not drained",
        "by_hand.py",
        old="    return broker.is_alive and not broker.is_full and broker.state is",
        new="    return True or broker.state is",
        killed_by="test_by_hand.py::test_draining_the_last_that_takes_leaders_is_refused",
    ),
    _rule(
        "where the balancer is off, only drained brokers are emptied",
        "leaders.py",
        old="    if only_empties:\n",
        new="    if False:\n",
        killed_by=f"{_LEADERS}::test_leaders_that_only_have_to_leave_are_the_only_ones_to_move",
    ),
    _rule(
        "a leader that is being handed over counts where it goes to",
        "board.py",
        old="    node = group.leader if group.moving_to is None else group.moving_to\n"
        "    return NONE if node is None",
        new="    node = group.leader and (group.moving_to or group.leader)\n"
        "    return NONE if node is None",
        killed_by=f"{_LEADERS}"
        "::test_a_leader_that_is_being_handed_over_counts_though_nobody_leads_for_a_moment",
    ),
    _rule(
        "a plan is begun a few moves at a time",
        "agenda.py",
        old="            self._of_broker.get(node, 0) < times for",
        new="            False for",
        killed_by="test_agenda.py::test_a_few_begin_at_a_time_until_all_is_done",
    ),
    _rule(
        "so it is where many brokers are to begin some",
        "agenda.py",
        old="        if len(moves) > self._left or any(\n",
        new="        if any(\n",
        killed_by="test_agenda.py::test_two_do_not_change_places_where_only_one_more_may_move",
    ),
    _rule(
        "of two that change places neither begins alone",
        "agenda.py",
        old="        if not room.is_too_small(moves) and moves[0].step not in self._begun:\n",
        new="        if False:\n",
        killed_by="test_agenda.py::test_two_that_change_places_do_not_begin_one_without_the_other",
    ),
    _rule(
        "who cannot change places any more stays",
        "agenda.py",
        old="            if len(fitting) < len(step) and step[0].step not in self._begun:\n",
        new="            if False:\n",
        killed_by="test_agenda.py::test_who_cannot_change_places_any_more_stays",
    ),
    _rule(
        "who is to lead nothing does not wait for others of its step",
        "agenda.py",
        old="[move for move in fitting if move.cause.empties]",
        new="[]",
        killed_by="test_agenda.py::test_a_leader_that_has_to_leave_does_not_wait_for_its_step",
    ),
    _rule(
        "moves on the way take room",
        "agenda.py",
        old="            if group.moving_to is not None:\n",
        new="            if False:\n",
        killed_by="test_agenda.py::test_what_is_on_the_way_counts",
    ),
    _rule(
        "what was planned is looked at again before it begins",
        "agenda.py",
        old="        and why_no_leaders(target, snapshot.now_ms, settings) is None\n",
        new="",
        killed_by="test_agenda.py::test_nothing_goes_to_a_broker_that_takes_no_leaders_any_more",
    ),
    _rule(
        "a move whose leader has changed is not begun",
        "agenda.py",
        old="        group.leader == move.source\n",
        new="        group.leader is not None\n",
        killed_by="test_agenda.py::test_what_does_not_fit_any_more_is_dropped",
    ),
)
