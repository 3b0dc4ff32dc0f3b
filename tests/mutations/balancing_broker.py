"""Rules of the broker about balancing: who is elected last, what is known, what may be begun."""

from tests.mutations import Mutation

MUTATIONS = (
    Mutation(
        name="who is to lead nothing is elected last",
        file="partitions/replication/campaigns.py",
        old="        for node in election_order(preferred, self.last_resorts):\n",
        new="        for node in preferred:\n",
        killed_by="tests/partitions/replication/test_last_resorts.py"
        "::test_a_drained_broker_is_not_elected_where_another_can_be",
    ),
)
