"""What becomes of a broker's number once that broker has left the cluster."""

from tests.mutations import Mutation

_NEIGHBOURS = "tests/broker/test_neighbours.py"


def _rule(name: str, *, old: str, new: str, killed_by: str) -> Mutation:
    return Mutation(
        name=name,
        file="broker/metadata/neighbours.py",
        old=old,
        new=new,
        killed_by=f"{_NEIGHBOURS}::{killed_by}",
    )


MUTATIONS = (
    _rule(
        "a broker that was removed is none of the cluster's",
        old="        if not isinstance(outcome.command, UnregisterBroker):\n",
        new="        if True:\n",
        killed_by="test_a_broker_that_was_removed_is_no_neighbour_any_more",
    ),
    _rule(
        "another broker of a number is not taken for an earlier start",
        old="        if len(same) < len(self._peers):\n",
        new="        if False:\n",
        killed_by="test_another_broker_of_a_number_is_heard_though_the_removal_was_not_seen",
    ),
    _rule(
        "a later start of a broker ends the earlier one",
        old="            if broker.incarnation > own.incarnation:\n",
        new="            if False:\n",
        killed_by="test_a_later_start_ends_this_one",
    ),
    _rule(
        "who had a number before does not end who has it now",
        old="        elif self._is_current:  # Else",
        new="        else:  # Else",
        killed_by="test_the_number_of_one_that_has_left_does_not_end_who_has_it_now",
    ),
    _rule(
        "starts are counted by the directory",
        old="        if broker.directory_id == own.directory_id:\n",
        new="        if True:\n",
        killed_by="test_the_number_of_one_that_has_left_does_not_end_who_has_it_now",
    ),
    _rule(
        "who was removed ends once another has its number",
        old="        elif self._is_current:  # Else",
        new="        elif False:  # Else",
        killed_by="test_who_was_removed_ends_once_another_has_its_number",
    ),
    Mutation(
        name="who comes under the number of one that has left leads nothing yet",
        file="partitions/replication/node_peers.py",
        old="            self._news.forget(node)\n            self._forget_process(node)\n",
        new="            self._news.forget(node)\n",
        killed_by="tests/partitions/replication/test_node.py::"
        "test_who_comes_under_the_number_of_one_that_has_left_leads_nothing",
    ),
    Mutation(
        name="a controller is named where clients are told where it is",
        file="broker/metadata/brokers.py",
        old="        return controller if controller in self.registered else None\n",
        new="        return controller\n",
        killed_by="tests/broker/test_brokers.py::"
        "test_a_controller_that_is_not_registered_here_yet_is_not_named",
    ),
    Mutation(
        name="a broker that may be cut off keeps no client who wants leaders",
        file="broker/handlers/metadata.py",
        old="    if brokers.hears_most or not any(map(lacks_leader, topics)):\n",
        new="    if brokers:\n",
        killed_by="tests/system/test_cut_off.py::"
        "test_a_broker_that_may_be_cut_off_sends_those_away_who_keep_asking_it_for_leaders",
    ),
    Mutation(
        name="a broker that may be cut off keeps no client who wants a coordinator",
        file="broker/handlers/find_coordinator.py",
        old="    if brokers.hears_most or not is_in_vain:\n",
        new="    if brokers:\n",
        killed_by="tests/system/test_cut_off.py::"
        "test_a_broker_that_may_be_cut_off_sends_those_away_who_keep_asking_for_a_coordinator",
    ),
    Mutation(
        name="an election of a coordinator is waited out",
        file="broker/handlers/find_coordinator.py",
        old="            if coordinator.has_resigned or trio.current_time() >= until:\n",
        new="            if until:\n",
        killed_by="tests/system/test_cut_off.py::"
        "test_who_asks_for_a_coordinator_while_one_is_elected_is_told_of_the_new_one",
    ),
    Mutation(
        name="a broker that stops lets nobody wait for a coordinator",
        file="broker/handlers/find_coordinator.py",
        old="            if coordinator.has_resigned or trio.current_time() >= until:\n",
        new="            if trio.current_time() >= until:\n",
        killed_by="tests/system/test_cut_off.py::"
        "test_who_waits_for_a_coordinator_does_not_keep_a_broker_from_stopping",
    ),
    Mutation(
        name="brokers that others lead in place of are asked about, and nobody else",
        file="broker/metadata/brokers.py",
        old="        return bool(missing) and min(map(self._liveness.silent_seconds, missing)) >= ",
        new="        return bool(missing) and 1.0 >= ",
        killed_by="tests/broker/test_leaders_elsewhere.py::"
        "test_while_a_leader_may_be_about_to_be_elected_nobody_is_asked",
    ),
    Mutation(
        name="what others say of leaders is asked once a second, however many clients ask",
        file="broker/leaders_elsewhere.py",
        old="        self._asked.update(wanted)\n",
        new="",
        killed_by="tests/broker/test_leaders_elsewhere.py::"
        "test_the_others_are_asked_once_a_second_about_a_topic",
    ),
    Mutation(
        name="an older epoch that another broker knows is nobody's leader",
        file="broker/handlers/unheard_leaders.py",
        old="    if epoch < partition.leader_epoch:\n        return partition\n",
        new="",
        killed_by="tests/broker/test_leaders_elsewhere.py::test_a_leader_of_an_older_epoch_is_none",
    ),
    Mutation(
        name="who does not hear the controller has producer ids from others",
        file="broker/handlers/init_producer_id.py",
        old="    if may_ask and is_lost and not node.producer_ids.has_some:\n",
        new="    if may_ask and is_lost and node.producer_ids.has_some:\n",
        killed_by="tests/system/test_cut_off.py::"
        "test_who_does_not_hear_the_controller_has_producer_ids_from_another",
    ),
    Mutation(
        name="who is asked by another broker asks no third",
        file="broker/handlers/metadata.py",
        old="    if context.session.is_clients and not node.brokers.hears_all:\n",
        new="    if not node.brokers.hears_all:\n",
        killed_by="tests/broker/test_leaders_elsewhere.py::"
        "test_who_is_asked_by_another_broker_asks_no_third",
    ),
    Mutation(
        name="a controller that is named and not listed is looked up again",
        file="client/network.py",
        old="        if self.view.controller is None:\n            await self.refresh()\n",
        new="",
        killed_by="tests/client/test_network.py::"
        "test_a_controller_that_is_named_and_not_listed_is_looked_up_again",
    ),
)
