"""Rules of transactions that whoever plants bugs for the simulator thinks of first."""

from tests.mutations import Mutation

_OF_TRANSACTIONS = "tests/partitions/state_machines/transactions"
_REPLICAS = "tests/partitions/replication/test_transactions.py"

MUTATIONS = (
    Mutation(
        name="markers wait for the decision",
        file="partitions/state_machines/transactions/shard.py",
        old="        held = self._held.setdefault(transactional_id, Held())\n"
        "        self._write(\n",
        new="        held = self._held.setdefault(transactional_id, Held())\n"
        "        if decision.becomes is not None and decision.becomes.state.is_prepared:\n"
        "            effects.markers.append(_markers(transactional_id, decision.becomes))\n"
        "        self._write(\n",
        killed_by=f"{_OF_TRANSACTIONS}/test_transactions.py::TestATransaction"
        "::test_the_decision_is_answered_when_it_is_durable_and_not_before",
    ),
    Mutation(
        name="a coordinator is asked before the first batch",
        file="broker/replicas/replica_transactions.py",
        old="return known != epoch or producer_id not in table.transactions.opened",
        new="return False",
        killed_by="tests/broker/handlers/test_verifying.py"
        "::test_only_the_first_batch_of_a_transaction_is_asked_about",
    ),
    Mutation(
        name="a snapshot tells what is open",
        file="partitions/state_machines/open_transactions.py",
        old="table.opened[ProducerId(producer_id)] = Opened(Offset(offset), began_ms)\n",
        new="pass\n",
        killed_by="tests/partitions/state_machines/test_open_transactions.py"
        "::test_a_snapshot_goes_on_where_it_was_taken",
    ),
    Mutation(
        name="a replay finds what is open",
        file="partitions/state_machines/producers.py",
        old="        if attributes & TRANSACTIONAL_BIT:\n            assert",
        new="        if attributes & TRANSACTIONAL_BIT and heard_ms is not None:\n"
        "            assert",
        killed_by=f"{_REPLICAS}::test_who_leads_after_a_loss_of_power_knows_what_was_aborted",
    ),
    Mutation(
        name="offsets that are undecided are read back as that",
        file="partitions/state_machines/groups/reading_back.py",
        old="            if header.is_transactional:\n",
        new="            if False:\n",
        killed_by="tests/partitions/state_machines/groups/test_transactional_offsets.py"
        "::test_read_back_at_any_time_it_is_the_same",
    ),
    Mutation(
        name="what has to come about is tried again when it could not be written",
        file="partitions/state_machines/transactions/shard.py",
        old="            self._retry_later(transactional_id, held, at)\n",
        new="            pass\n",
        killed_by=f"{_OF_TRANSACTIONS}/test_failures.py::TestAWriteThatFails"
        "::test_what_has_to_come_about_is_tried_again_later",
    ),
    Mutation(
        name="a transaction that began after its id's alarm was set has one, too",
        file="partitions/state_machines/transactions/shard.py",
        old="                self._agenda.note(name, held.deadline_ms)\n",
        new="                pass\n",
        killed_by=f"{_OF_TRANSACTIONS}/test_time.py::TestTime"
        "::test_a_transaction_after_another_one_has_its_own_time",
    ),
    Mutation(
        name="a change of an id that could not be written has not come about",
        file="partitions/state_machines/transactions/shard.py",
        old="            self._retry_later(transactional_id, held, at)\n",
        new="            value = unstored.write.value or held.value\n"
        "            self._become(transactional_id, held, value, effects, at)\n",
        killed_by=f"{_OF_TRANSACTIONS}/test_failures.py::TestAWriteThatFails"
        "::test_nothing_has_changed_and_the_producer_is_told",
    ),
)
