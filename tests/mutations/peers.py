"""What brokers know of each other: who lives, who leads what, and what their connections mean."""

from tests.mutations import Mutation, Room

_rule = Room("partitions/replication").rule


def _link_rule(name: str, file: str = "link.py", *, old: str, new: str, killed_by: str) -> Mutation:
    """Of the connections with another broker."""
    return Mutation(
        name=name,
        file=f"broker/peers/{file}",
        old=old,
        new=new,
        killed_by=f"tests/broker/peers/{killed_by}",
    )


MUTATIONS = (
    # Who lives, and who leads
    _rule(
        "a broker that hears nothing is not alive",
        "peer_table.py",
        old="            and min(peer.heard, peer.confirmed) <= now",
        new="            and peer.heard <= now",
        killed_by="test_peer_table.py::test_a_peer_that_hears_nothing_is_dead_however_much_it_speaks",
    ),
    _rule(
        "what was confirmed before a connection was lost says nothing after",
        "peer_table.py",
        old="        if sent >= peer.lost:\n",
        new="        if True:\n",
        killed_by="test_peer_table.py::test_what_a_peer_heard_before_it_was_lost_does_not_bring_it_back",
    ),
    _rule(
        "a leader without a majority steps down",
        "node_peers.py",
        old="lost(node)\n        for replica in self._leaders.led_with(node):\n",
        new="lost(node)\n        for replica in []:\n",
        killed_by="test_cluster.py::test_a_leader_that_is_cut_off_resigns_and_appends_no_more",
    ),
    _rule(
        "a dead broker's groups have no leader",
        "leaders.py",
        old="            replica.tell(Group.leader_lost)\n        for key, _ in",
        new="            pass\n        for key, _ in",
        killed_by="test_cluster.py::test_the_leader_dies_and_another_one_goes_on",
    ),
    _rule(
        "who has resigned from a later epoch does not lead an earlier one",
        "leaders.py",
        old="elif replica.leader == source and replica.epoch <= beat.epoch:",
        new="elif replica.leader == source and replica.epoch == beat.epoch:",
        killed_by="test_node.py::"
        "test_who_has_led_a_later_epoch_and_resigned_is_not_followed_in_an_earlier_one",
    ),
    _rule(
        "nor is it followed there by what it has sent before",
        "known_leaders.py",
        old="        return epoch < known.epoch\n",
        new="        return False\n",
        killed_by="test_known_leaders.py::test_nobody_leads_an_epoch_after_which_one_had_a_leader",
    ),
    _rule(
        "to resign is final within an epoch",
        "known_leaders.py",
        old=" or (beat.epoch == known.epoch and beat.leads > known.leads)",
        new="",
        killed_by="test_known_leaders.py::test_to_resign_is_final_within_an_epoch",
    ),
    _rule(
        "a heartbeat that comes late is dropped",
        "heartbeats.py",
        old="        if heartbeat.sequence <= link.taken_in:\n",
        new="        if False:\n",
        killed_by="test_heartbeats.py::test_a_heartbeat_that_comes_late_is_dropped",
    ),
    _rule(
        "news are repeated until they are confirmed",
        "heartbeats.py",
        old="                if carried_by > heartbeat.acknowledges\n",
        new="                if False\n",
        killed_by="test_heartbeats.py::test_newer_news_of_the_same_group_are_not_confirmed_with_the_older",
    ),
    _rule(
        "a new process is told everything",
        "node_peers.py",
        old="        if is_new:\n",
        new="        if False:\n",
        killed_by="test_node.py::test_a_broker_that_comes_late_learns_who_leads",
    ),
    _rule(
        "replication that stands still is begun again",
        "retries.py",
        old="                replica.tell(partial(reset_peer, node=node))\n",
        new="                pass\n",
        killed_by="test_cluster.py::test_messages_that_were_lost_are_sent_again",
    ),
    _rule(
        "who is there late says so to its leader",
        "leaders.py",
        old="                self._say_opened(replica, leader)\n",
        new="                pass\n",
        killed_by="test_node.py::"
        "test_who_comes_back_is_sent_what_it_lacks_when_it_opens_its_groups",
    ),
    _rule(
        "who is there late says so to who had better lead",
        "leaders.py",
        old="                self._say_opened(replica, node)\n",
        new="                pass\n",
        killed_by="test_node.py::"
        "test_the_preferred_one_leads_though_the_others_open_the_group_later",
    ),
    _rule(
        "who has heard its leader need not say so",
        "node.py",
        old="                self._leaders.met(replica)\n",
        new="                pass\n",
        killed_by="test_node.py::test_who_has_heard_its_leader_does_not_say_that_it_is_there",
    ),
    _rule(
        "what was on its way on a connection that was replaced is sent again",
        "node_peers.py",
        old="        elif was_alive:\n            self._begin_again_with(node)\n",
        new="",
        killed_by="test_node.py::test_a_connection_that_is_replaced_costs_messages_and_no_leader",
    ),
    _rule(
        "only so many groups campaign at once",
        "elections.py",
        old="        while self._due and len(self._campaigning) <",
        new="        while self._due and 0 <",
        killed_by="test_elections.py::test_only_so_many_campaign_at_once",
    ),
    _rule(
        "who was not elected tries again",
        "elections.py",
        old="        self._retry_stalled(now, was_read)\n",
        new="",
        killed_by="test_elections.py::test_who_was_not_elected_tries_again",
    ),
    _rule(
        "a voter waits for one before it no longer than a candidate for its next turn",
        "elections.py",
        old="min(2 * self.slowness_seconds, timing.campaign_wait_max_seconds)",
        new="2 * self.slowness_seconds",
        killed_by="test_elections.py::"
        "test_no_voter_waits_longer_for_one_before_it_than_a_candidate_for_its_next_turn",
    ),
    _rule(
        "where confirmations take long, voters stand further apart",
        "elections.py",
        old="min(2 * self.slowness_seconds, timing.campaign_wait_max_seconds)",
        new="0.0",
        killed_by="test_elections.py::"
        "test_where_confirmations_take_long_voters_stand_further_apart",
    ),
    _rule(
        "no campaign is given up before the voters have read that there is one",
        "elections.py",
        old="            if was_read(key, waiting.since):\n",
        new="            if True:\n",
        killed_by="test_starved.py::test_groups_that_lost_their_leader_have_one_candidate[0.005]",
    ),
    _rule(
        "where confirmations are late every time, the failure timeout is longer",
        "peer_table.py",
        old="        return min(max(least, _PATIENCE * peer.delay_seconds), "
        "_STRETCH_MAX * least)\n",
        new="        return least\n",
        killed_by="test_peer_table.py::"
        "test_where_confirmations_are_late_every_time_the_timeout_is_longer_for_a_while",
    ),
    _rule(
        "who has nothing new to say is heard eight times in a failure timeout",
        "timing.py",
        old="_CALM_HEARTBEATS: Final = 8",
        new="_CALM_HEARTBEATS: Final = 1",
        killed_by="test_news.py::"
        "test_where_nothing_is_new_eight_heartbeats_go_out_in_a_failure_timeout",
    ),
    _rule(
        "news end the calm",
        "news.py",
        old="        self._heartbeats.add_news(key, nodes)\n        self._is_calm = False\n",
        new="        self._heartbeats.add_news(key, nodes)\n",
        killed_by="test_news.py::test_news_are_told_at_the_usual_interval_until_they_are_confirmed",
    ),
    _rule(
        "so do news of another broker, which waits to hear that they were read",
        "news.py",
        old="        if heartbeat.groups:\n            self._is_calm = False\n",
        new="        if False:\n            self._is_calm = False\n",
        killed_by="test_news.py::"
        "test_who_told_news_hears_within_the_usual_interval_that_they_were_read",
    ),
    _rule(
        "and who waits to hear what others have read",
        "news.py",
        old='have read."""\n        self._is_calm = False\n',
        new='have read."""\n',
        killed_by="test_news.py::"
        "test_who_waits_for_what_others_have_read_asks_at_the_usual_interval",
    ),
    _rule(
        "a heartbeat that is due soon answers another broker's",
        "news.py",
        old="            self._is_answer_due = True\n",
        new="            pass\n",
        killed_by="test_news.py::"
        "test_a_heartbeat_that_is_due_soon_goes_out_as_an_answer_to_another_brokers",
    ),
    _rule(
        "one that is overdue does not: this process may have stood still",
        "news.py",
        old="<= now < self._next:\n",
        new="<= now:\n",
        killed_by="test_news.py::"
        "test_what_is_overdue_is_no_answer_for_then_this_process_stood_still",
    ),
    _rule(
        "what a replica that has just been started lacks is sent some time, whatever is lost",
        "retries.py",
        old="            self._watch(replica, now, self._timing.retry_max_seconds)\n",
        new="            self._watch(replica, now, 1e9)\n",
        killed_by="test_starting.py::"
        "test_where_its_word_is_lost_it_is_sent_what_it_lacks_after_the_longest_wait",
    ),
    Mutation(
        name="and at once where it has to be asked",
        file="partitions/raft/leader.py",
        old="        if not can_wait or not self._is_at_rest(group):\n",
        new="        if not can_wait:\n",
        killed_by="tests/partitions/replication/test_starting.py::"
        "test_where_it_has_to_be_asked_it_is_asked_at_once",
    ),
    _rule(
        "to confirm the same again is silence, and not lateness",
        "peer_table.py",
        old="        is_new = sent > peer.read\n",
        new="        is_new = sent > _NEVER\n",
        killed_by="test_peer_table.py::"
        "test_who_confirms_the_same_again_and_again_is_not_late_but_deaf",
    ),
    _rule(
        "who goes on confirming hears, however late it is",
        "peer_table.py",
        old="            peer.confirmed = max(peer.confirmed, now if is_new else sent)\n",
        new="            peer.confirmed = max(peer.confirmed, sent)\n",
        killed_by="test_peer_table.py::"
        "test_where_confirmations_are_late_every_time_the_timeout_is_longer_for_a_while",
    ),
    _rule(
        "time that a broker did not get is not the others' silence",
        "node.py",
        old="            self.peers.forgive(late_seconds, now)\n",
        new="            pass\n",
        killed_by="test_starved.py::test_who_gets_little_of_a_processor_deposes_nobody",
    ),
    _rule(
        "a voter waits for what becomes of one that goes before it",
        "node.py",
        old="                self._campaigns.asked(replica, source, message.message, now)\n",
        new="                pass\n",
        killed_by="test_node.py::"
        "test_a_voter_that_is_asked_waits_for_what_becomes_of_the_one_before_it",
    ),
    _rule(
        "and of one that is handed the lead, wherever it goes",
        "campaigns.py",
        old="(request.ballot is Ballot.PRE and not self._goes_first(source, replica))",
        new="not self._goes_first(source, replica)",
        killed_by="test_node.py::"
        "test_a_voter_that_is_about_to_stand_leaves_it_to_who_is_handed_the_lead",
    ),
    _rule(
        "but not for ever",
        "elections.py",
        old="        if waiting is None or waiting.yielded >= _YIELDED_MAX:\n",
        new="        if waiting is None:\n",
        killed_by="test_elections.py::test_who_stands_again_and_again_in_vain_is_not_waited_for",
    ),
    _rule(
        "who has not come to read what was sent is not sent it again",
        "retries.py",
        old=" and self._peers.has_read(node, watch.since):\n",
        new=":\n",
        killed_by="test_node.py::test_a_follower_that_reads_late_is_not_sent_the_same_again",
    ),
    _rule(
        "a heartbeat that is confirmed late counts, however many came after it",
        "heartbeats.py",
        old="_TIMES_MAX: Final = 2_000\n",
        new="_TIMES_MAX: Final = 64\n",
        killed_by="test_heartbeats.py::test_a_late_confirmation_counts_after_many_heartbeats",
    ),
    _rule(
        "a peer that has much to read is not told it all again",
        "heartbeats.py",
        old="            and sum(beats for _, _, beats in times) > _BEATS_MAX\n",
        new="            and False\n",
        killed_by="test_heartbeats.py::test_a_peer_with_much_to_read_hears_less_often",
    ),
    _rule(
        "only who has not answered is asked again",
        "retries.py",
        old="            is_still = node in waits_for and watch",
        new="            is_still = watch",
        killed_by="test_node.py::"
        "test_a_follower_that_has_everything_is_not_asked_again_because_another_is_silent",
    ),
    _rule(
        "a leader that does not last does not bring candidates together again",
        "elections.py",
        old="        attempts, since = self._calmed.pop(key, (0, now))\n",
        new="        attempts, since = 0, now\n",
        killed_by="test_elections.py::"
        "test_a_leader_that_does_not_last_does_not_bring_candidates_together_again",
    ),
    # Leaders that are moved
    _rule(
        "a move goes on when something happens to its group",
        "node.py",
        old="                    self.moves.changed(replica, self._now)\n",
        new="                    pass\n",
        killed_by="test_moves.py::test_the_target_leads_and_nothing_of_what_was_written_is_lost",
    ),
    _rule(
        "a group that is given up is not moved any more",
        "node_groups.py",
        old='        self.moves.abort(key, "the replica was given up", self._now)\n',
        new="",
        killed_by="test_moves.py::test_a_group_that_is_given_up_is_not_moved_any_more",
    ),
    # Between brokers
    _link_rule(
        "a broker that has lost a connection is not down",
        old="                self._break(reason)\n",
        new="                self._went_down(reason)\n",
        killed_by="test_connections.py::test_a_lost_connection_is_not_a_lost_broker",
    ),
    _link_rule(
        "a broker where nobody listens is down at once",
        "dialing.py",
        old="        self._services.sockets.turn.run(partial(self._owner.not_connected, why))\n",
        new="",
        killed_by="test_network.py::"
        "test_a_broker_that_ends_is_down_at_once_and_up_again_when_it_is_back",
    ),
    _link_rule(
        "a broker that refuses a broken link is down at once",
        "dialing.py",
        old="            self._owner.not_connected(refused.reason)\n",
        new="",
        killed_by="test_connections.py::test_one_that_another_broker_stands_in_place_of_is_down_at_once",
    ),
    _link_rule(
        "a broker that does not answer on a broken link is down soon",
        old="            self._services.sockets.turn.run(partial(self._give_up, why))\n",
        new="",
        killed_by="test_connections.py::test_one_that_can_be_reached_and_does_not_answer_is_down_soon",
    ),
    _link_rule(
        "who is up is told that its connections are new",
        old="        if self.up is None or self._broken is not None:\n",
        new="        self._broken = None\n        if self.up is None:\n",
        killed_by="test_connections.py::test_a_lost_connection_is_not_a_lost_broker",
    ),
    Mutation(
        name="who has been taken in does not fill the metadata's log meanwhile",
        file="broker/metadata/reception.py",
        old="            self._begins = trio.current_time() + _AGAIN_SECONDS\n",
        new="            pass\n",
        killed_by="tests/broker/test_reception.py::"
        "test_who_has_been_taken_in_gives_the_others_time_to_connect",
    ),
    _link_rule(
        "where a broker is, only the one with its directory says",
        "whereabouts.py",
        old=" and judge_sighting(self._node, seen, known) is None\n",
        new="\n",
        killed_by="test_moved.py::test_who_is_not_the_broker_that_is_known_is_not_believed",
    ),
    Mutation(
        name="who is starting takes nobody for a stranger",
        file="broker/peers/network.py",
        old=" or not self._is_told\n",
        new="\n",
        killed_by="tests/broker/peers/test_network.py"
        "::test_one_that_is_starting_takes_nobody_for_a_stranger",
    ),
)
