"""What keeps clients within their quotas, and those without one from being looked at."""

from tests.mutations import Mutation

_BUCKET = "broker/quotas/token_bucket.py"
_CHARGE = "broker/quotas/charge.py"
_QUOTAS = "broker/quotas/quotas.py"
_STATE = "partitions/state_machines/client_quotas.py"
_CONNECTION = "broker/network/connection.py"
_OF_BUCKETS = "tests/broker/quotas/test_token_bucket.py::"
_OF_QUOTAS = "tests/broker/quotas/test_quotas.py::"
_OF_STATE = "tests/partitions/state_machines/test_client_quotas.py::"
_HELD_BACK = "tests/broker/network/test_held_back.py::"

MUTATIONS = (
    Mutation(
        name="a bucket holds no more than a burst",
        file=_BUCKET,
        old="min(self.burst, self._level + (now - self._at) * self.rate)",
        new="self._level + (now - self._at) * self.rate",
        killed_by=_OF_BUCKETS + "test_a_burst_costs_nothing_once",
    ),
    Mutation(
        name="what is not there is taken as a debt",
        file=_BUCKET,
        old="        self._level -= amount\n",
        new="        self._level = max(0.0, self._level - amount)\n",
        killed_by=_OF_BUCKETS + "test_the_wait_is_as_long_as_the_debt_takes",
    ),
    Mutation(
        name="who is over a quota is held back",
        file=_CHARGE,
        old="        self._session.hold_back(wait)\n        if not",
        new="        if not",
        killed_by=_OF_QUOTAS + "test_a_producer_over_its_quota_is_told_so_and_held_back",
    ),
    Mutation(
        name="what needs no answer costs as much",
        file=_CHARGE,
        old="        if wait := self._take(0):",
        new="        if wait := 0.0:",
        killed_by=_OF_QUOTAS + "test_a_producer_over_its_quota_is_told_so_and_held_back",
    ),
    Mutation(
        name="what was used up outlives a change of somebody else's quota",
        file=_QUOTAS,
        old="        if bucket is None or bucket.rate != rate:",
        new="        if True:",
        killed_by=_OF_QUOTAS + "test_what_was_used_up_is_kept_when_somebody_elses_quota_changes",
    ),
    Mutation(
        name="a snapshot's quotas take the place of those before",
        file=_QUOTAS,
        old="            self._followed[0] is quotas and self._followed[1] == quotas.revision",
        new="            self._followed[1] == quotas.revision or quotas.revision == 0",
        killed_by=_OF_QUOTAS + "test_a_snapshot_takes_the_place_of_what_was_known",
    ),
    Mutation(
        name="clients with ever new names fill no memory",
        file=_QUOTAS,
        old="            self._forget_meters()\n            self._forget_idle()\n",
        new="            self._forget_meters()\n",
        killed_by=_OF_QUOTAS + "test_the_names_of_clients_fill_no_memory[new]",
    ),
    Mutation(
        name="clients with long names fill no memory",
        file=_QUOTAS,
        old="            if chars > NAMES_CHARS_MAX:\n",
        new="            if False:\n",
        killed_by=_OF_QUOTAS + "test_the_names_of_clients_fill_no_memory[long]",
    ),
    Mutation(
        name="the most particular quota holds",
        file=_STATE,
        old="    for of_user in users:",
        new="    for of_user in reversed(users):",
        killed_by=_OF_STATE + "test_the_most_particular_quota_holds",
    ),
    Mutation(
        name="no quota is zero",
        file=_STATE,
        old="    if not 0 < value < math.inf:",
        new="    if not 0 <= value < math.inf:",
        killed_by=_OF_STATE + "test_no_quota_is_zero_or_less_or_half_a_byte",
    ),
    Mutation(
        name="who is held back is not read",
        file=_CONNECTION,
        old="        self._requests_max = 0\n        self._held_back",
        new="        self._held_back",
        killed_by=_HELD_BACK
        + "test_a_client_that_is_held_back_is_answered_at_once_and_not_read_until_then",
    ),
    Mutation(
        name="who is held back and goes is noticed",
        file=_CONNECTION,
        old="            interest |= EPOLLRDHUP",
        new="            pass",
        killed_by=_HELD_BACK + "test_a_client_that_is_held_back_may_go",
    ),
    Mutation(
        name="a broker that stops reads nobody any more",
        file=_CONNECTION,
        old="        self._end_hold_back()\n        self._requests_max = 0\n"
        "        self._update_interest()",
        new="        self._requests_max = 0\n        self._update_interest()",
        killed_by=_HELD_BACK + "test_a_broker_that_stops_reads_nobody_who_was_held_back",
    ),
    Mutation(
        name="what was changed is seen by the next request of the connection",
        file=_CONNECTION,
        old="            self._awaited = call\n",
        new="            pass\n",
        killed_by="tests/broker/network/test_connection.py::"
        "test_what_changes_something_is_done_before_the_next_request_is_looked_at",
    ),
)
