"""What keeps a change of voters from waiting for ever for somebody who is in doubt."""

from tests.mutations import Mutation

_LEADER = "partitions/raft/leader.py"
_TESTS = "tests/scenarios/test_doubt.py::"

MUTATIONS = (
    Mutation(
        name="the lead is handed to nobody who is in doubt",
        file=_LEADER,
        old=" and self._progress[node].doubted_at is None\n",
        new="\n",
        killed_by=f"{_TESTS}test_who_is_in_doubt_is_not_handed_the_lead_while_there_is_somebody_else",
    ),
    Mutation(
        name="doubts end while a change waits, too",
        file=_LEADER,
        old="        waits = not config.is_joint or group.node_id not in config.voters\n",
        new="        waits = not config.is_joint\n",
        killed_by=f"{_TESTS}test_a_change_whose_only_heir_is_in_doubt_is_finished_all_the_same",
    ),
)
