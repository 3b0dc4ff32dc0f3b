"""Rules of the broker about balancing: who is elected last, what is known, what may be begun."""

from tests.mutations import Mutation, Room

_STATES, _LOOP, _REPORTS = "test_broker_states.py", "test_balancer.py", "test_reports.py"
_GATHERING = "test_gathering.py"


_rule = Room("broker/balancing").rule


MUTATIONS = (
    Mutation(
        name="who is to lead nothing is elected last",
        file="partitions/replication/campaigns.py",
        old="        for node in election_order(preferred, self.last_resorts):\n",
        new="        for node in preferred:\n",
        killed_by="tests/partitions/replication/test_last_resorts.py"
        "::test_a_drained_broker_is_not_elected_where_another_can_be",
    ),
    _rule(
        "of two drains at once the second one sees the first",
        "broker_states.py",
        old="            seen = self._gathering.with_states_of(snapshot, current)\n",
        new="            seen = snapshot\n",
        killed_by=f"{_STATES}::test_two_drains_that_would_cost_a_quorum_are_not_both_taken",
    ),
    _rule(
        "what would cost a quorum is refused",
        "broker_states.py",
        old="            if not force:\n",
        new="            if False:\n",
        killed_by=f"{_STATES}::test_a_broker_that_holds_the_only_copy_is_not_drained_but_can_leave",
    ),
    _rule(
        "the metadata keep their majority, too",
        "broker_states.py",
        old="refusals=(*drain.refusals, *of_metadata)",
        new="refusals=drain.refusals",
        killed_by=f"{_STATES}::test_a_drain_costs_no_majority_of_the_metadata",
    ),
    _rule(
        "a broker that runs is not forgotten",
        "departures.py",
        old="        if broker.is_alive or any(",
        new="        if any(",
        killed_by=f"{_STATES}::test_a_broker_that_leaves_gives_its_replicas_away_and_is_forgotten",
    ),
    _rule(
        "a move that has failed is not tried again at once",
        "beginning.py",
        old="            self._history.move_ended(move.id, now())\n",
        new="            pass\n",
        killed_by=f"{_LOOP}::test_a_move_that_fails_is_not_tried_again_at_once",
    ),
    _rule(
        "who does not lead the metadata wishes for nothing",
        "balancer.py",
        old="            if self._cluster.leads:\n",
        new="            if True:\n",
        killed_by=f"{_LOOP}::test_it_does_nothing_while_another_broker_leads_the_metadata",
    ),
    _rule(
        "who has not said how far it is gets no leaders",
        "gathering.py",
        old="        if each.lag != UNKNOWN_LAG and each.node_id != leader\n",
        new="        if each.node_id != leader\n",
        killed_by=f"{_LOOP}::test_who_has_not_said_how_far_it_is_gets_no_leaders",
    ),
    _rule(
        "what a leader has told is looked at",
        "changes.py",
        old="            for key in (*(led or ()), *told):\n",
        new="            for key in led or ():\n",
        killed_by=f"{_GATHERING}::test_it_sees_what_one_sees_who_looks_at_all",
    ),
    _rule(
        "where a broker comes or goes, all is looked at",
        "changes.py",
        old=" or alive != self._alive or",
        new=" or",
        killed_by=f"{_GATHERING}::test_it_sees_what_one_sees_who_looks_at_all",
    ),
    _rule(
        "a broker that comes and goes is let be",
        "history.py",
        old=" or (seen.is_alive, seen.incarnation) != (is_alive, incarnation):\n",
        new=":\n",
        killed_by=f"{_REPORTS}::test_a_broker_is_up_since_it_came_back_or_was_replaced",
    ),
    _rule(
        "what was told of an earlier epoch does not count",
        "reports.py",
        old="        return load if load is not None and load.epoch == epoch else None\n",
        new="        return load\n",
        killed_by=f"{_REPORTS}::test_only_what_the_leader_says_of_its_epoch_counts",
    ),
    _rule(
        "what was told in an earlier lead is forgotten",
        "reports.py",
        old="        if self._epoch != epoch:\n",
        new="        if False:\n",
        killed_by=f"{_REPORTS}::test_what_was_told_in_an_earlier_lead_is_forgotten",
    ),
    _rule(
        "who has told nothing in this epoch may have a full disk",
        "reports.py",
        old="        return self._disks[node] if node in self._loads else None\n",
        new="        return self._disks.get(node, _HAS_ROOM)\n",
        killed_by="test_full_disks.py::test_who_has_not_told_a_new_leader_of_the_metadata_how_its_disk_"
        "is_gets_no_leaders",
    ),
    _rule(
        "after a report that may not have come everything is told anew",
        "reports.py",
        old="                self._told_to = None\n                return True\n",
        new="                return True\n",
        killed_by=f"{_REPORTS}::test_after_a_report_that_may_not_have_come_everything_is_told_anew",
    ),
    Mutation(
        name="who is to leave votes on the metadata only where others are too few",
        file="broker/metadata/voters.py",
        old="    return staying if enough else everybody\n",
        new="    return staying\n",
        killed_by="tests/broker/test_voters.py"
        "::test_who_is_to_leave_votes_where_the_others_are_too_few",
    ),
    _rule(
        "what a drain has moved comes home as soon as it is over",
        "beginning.py",
        old="        if was_drain and move.failure is None:\n",
        new="        if False:\n",
        killed_by=f"{_LOOP}"
        "::test_what_was_moved_by_a_drain_comes_home_after_it_and_nothing_else_moves",
    ),
    _rule(
        "a cluster in which nothing happens is not planned for again and again",
        "balancer.py",
        old="        if self._is_settled(snapshot, rules):\n",
        new="        if False:\n",
        killed_by=f"{_LOOP}"
        "::test_a_cluster_in_which_nothing_happens_is_not_planned_for_again_and_again",
    ),
    _rule(
        "who was let be for a while is looked at again after it",
        "settled.py",
        old="        return not cooled or (not self.waits and len(cooled) < len(cooling))\n",
        new="        return True\n",
        killed_by="test_settled.py"
        "::test_a_move_that_waits_for_a_group_to_cool_is_thought_of_when_that_has",
    ),
)
