"""What keeps small requests from taking all memory with their answers."""

from tests.mutations import Mutation

_TEST = "tests/broker/handlers/test_repeated.py::test_what_is_named_again_is_answered_once"

_PACE = "tests/broker/test_steps.py::"
_UNREAD = "tests/broker/network/test_unread_answers.py::"

MUTATIONS = (
    Mutation(
        name="unread answers of all connections are too many together",
        file="broker/network/connection.py",
        old="            and (not self.unread_bytes or not self._shared.unread.is_full)\n",
        new="",
        killed_by=_UNREAD + "test_many_that_do_not_read_take_no_more_together_than_there_is",
    ),
    Mutation(
        name="what a connection had unread is given back at its end",
        file="broker/network/connection.py",
        old="        self._shared.unread.size_bytes -= self.unread_bytes\n",
        new="",
        killed_by=_UNREAD + "test_while_it_is_used_up_who_does_not_read_has_to_go",
    ),
    Mutation(
        name="who does not read has to go while others wait for its memory",
        file="broker/network/connections.py",
        old="            self._end_unreading(now)\n",
        new="            pass\n",
        killed_by=_UNREAD + "test_while_it_is_used_up_who_does_not_read_has_to_go",
    ),
    Mutation(
        name="answers behind one that is not there count for their connection",
        file="broker/network/connection.py",
        old="            and out.memory_bytes + self._lined_bytes < self._response_bytes_max\n",
        new="            and out.memory_bytes < self._response_bytes_max\n",
        killed_by=_UNREAD + "test_answers_that_wait_for_the_one_before_them_count_too",
    ),
    Mutation(
        name="a container with little memory leaves little for requests",
        file="broker/network/memory.py",
        old="    return min(wanted, memory_bytes() // _SHARE)\n",
        new="    return wanted\n",
        killed_by="tests/broker/network/test_memory.py::test_a_limit_of_the_process_counts_as_well",
    ),
    Mutation(
        name="what is named again is answered once",
        file="broker/steps.py",
        old="        first.setdefault(of(element), element)\n",
        new="        first[len(first)] = element\n",
        killed_by=_TEST,
    ),
    Mutation(
        name="a group that is named again is described once",
        file="broker/handlers/describe_groups.py",
        old="distinct(request.groups)",
        new="request.groups",
        killed_by=_TEST,
    ),
    Mutation(
        name="the producers of a partition that is named again are described once",
        file="broker/handlers/describe_producers.py",
        old="            answered.add((topic.name, index))\n",
        new="",
        killed_by="tests/broker/handlers/test_repeated.py::"
        "test_the_producers_of_a_partition_are_described_once",
    ),
    Mutation(
        name="requests that come together are not all begun together",
        file="broker/network/dispatch.py",
        old="        await pace_of_loop().begin(context.session.connection_id)\n",
        new="",
        killed_by=_PACE + "test_the_sockets_are_looked_at_between_two_requests_with_much_to_do",
    ),
    Mutation(
        name="who asks for much waits for itself",
        file="broker/steps.py",
        old="                self._new[client] = waiting  # behind the others\n",
        new="                self._new = {client: waiting, **self._new}\n",
        killed_by=_PACE + "test_who_asks_for_a_hundred_things_waits_for_itself",
    ),
    Mutation(
        name="what is begun is done before more is begun",
        file="broker/steps.py",
        old="        elif self._new:\n",
        new="        if self._new:\n",
        killed_by=_PACE + "test_what_is_begun_is_done_before_more_is_begun",
    ),
    Mutation(
        name="nobody is answered who has gone",
        file="broker/network/dispatch.py",
        old="        if context.session.is_over and call.route.api.key in _FOR_CLIENT_ALONE:\n",
        new="        if False:\n",
        killed_by=_PACE + "test_who_has_gone_is_told_nothing",
    ),
)
