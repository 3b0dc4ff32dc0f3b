"""What decides which of several values of a config holds, and which cannot change at run time."""

from tests.mutations import Mutation

_RUNNING = "broker/metadata/running_configs.py"
_DEFAULTS = "broker/metadata/topic_defaults.py"
_TOPICS = "broker/metadata/shown_topics.py"

MUTATIONS = (
    Mutation(
        name="what was set for a broker comes before what was set for all",
        file=_DEFAULTS,
        old="for layer in reversed(self.layers):",
        new="for layer in self.layers:",
        killed_by="tests/broker/test_topics.py::"
        "test_what_was_set_for_a_broker_comes_before_what_was_set_for_all",
    ),
    Mutation(
        name="what is read once at a start is not taken while a broker runs",
        file=_RUNNING,
        old="    | THROTTLE_SETTINGS\n",
        new="    | THROTTLE_SETTINGS | {'num.partitions': TOPIC_SETTINGS['retention.ms']}\n",
        killed_by="tests/broker/handlers/test_configs.py::"
        "test_what_cannot_change_while_a_broker_runs_says_so",
    ),
    Mutation(
        name="a broker's defaults reach the replicas that are open",
        file=_TOPICS,
        old="                self._hosting.reconfigure(self._topics[topic.name])",
        new="                pass",
        killed_by="tests/broker/test_topics.py::"
        "test_what_was_set_for_a_broker_comes_before_what_was_set_for_all",
    ),
)
