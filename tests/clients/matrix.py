"""The README's table of client × feature, made from the tests that stand for its cells.

`python -m tests.clients.matrix` writes it; `test_matrix.py` holds it to be current.
"""

import ast
from pathlib import Path

HERE = Path(__file__).parent
README = HERE.parent.parent / "README.md"
BEGIN = "<!-- matrix: written by python -m tests.clients.matrix -->\n"
END = "<!-- end of matrix -->\n"

CLIENTS = {
    "test_tidemark": "tidemark (library)",
    "test_cli": "tidemark (CLI)",
    "test_librdkafka": "librdkafka",
    "test_aiokafka": "aiokafka",
    "test_kafka_python": "kafka-python",
    "test_kcat": "kcat",
    "test_pyspark": "PySpark",
}

FEATURES = {
    "test_topics": "create, list, extend, delete topics",
    "test_list_topics": "list topics and brokers (all that it can)",
    "test_configs": "describe and alter configs",
    "test_produce_and_consume": "keys, values, nulls, headers, timestamps",
    "test_acks": "acks 0, 1, all",
    "test_compression": "gzip, snappy, lz4, zstd",
    "test_idempotent_producer": "idempotent producer",
    "test_order_within_each_partition": "order within each partition",
    "test_offsets_by_time": "offsets by time",
    "test_group_shares_partitions": "group shares partitions",
    "test_group_reads": "a group's only member reads all",
    "test_commits_survive_a_restart": "commits survive `kill -9`",
    "test_static_member": "static membership",
    "test_group_admin": "list, describe groups and their offsets",
    "test_delete_records": "delete records",
    "test_automatic_topic": "topic made by first use",
    "test_record_too_large": "a record too large is refused",
    "test_quotas": "over its quota: held back, nothing lost",
    "test_fetch_sessions": "fetch sessions",
    "test_streaming": "streaming read",
    "test_failover": "a leader is killed: nothing lost, nothing twice",
    "test_moving": "a leader is moved: nothing fails, nothing twice",
    "test_preferred_leaders_are_elected": "preferred leaders are elected",
    "test_replicas_are_reassigned": "replicas are moved",
    "test_group_failover": "a group's coordinator is killed: nothing skipped, no commit lost",
}

_COMPACTED = (
    "clients/test_compaction.py::test_every_client_reads_a_compacted_topic_from_its_beginning"
)
_OBSERVED = (
    "clients/test_observers.py::"
    "test_a_config_asks_for_observers_and_other_clients_read_from_the_one_near_them"
)
_SASL = "clients/test_sasl.py::test_a_client_that_knows_the_password_is_served"
_USERS = "clients/test_users.py::test_a_user_logs_in_at_each_broker_by_the_mechanism_it_has"
_ACLS = "clients/test_acls.py::test_what_acls_allow_goes_on_until_they_are_gone"
_CERTIFICATES = (
    "clients/test_users_by_certificate.py::test_what_one_certificates_user_may_do_another_may_not"
)
_TLS = "clients/test_tls.py::test_what_a_client_writes_it_reads"
_IN_CLUSTERS = "clients/test_transactions_in_clusters.py::"
_OTHERS = ("test_librdkafka", "test_aiokafka", "test_kafka_python")

SHARED = {
    "transactions, read committed": {
        "test_tidemark": "client/test_transactions.py::"
        "test_all_of_a_transaction_is_read_or_nothing",
        "test_librdkafka": _IN_CLUSTERS
        + "test_what_librdkafka_commits_is_all_that_readers_of_committed_records_get",
        "test_aiokafka": _IN_CLUSTERS + "test_aiokafka_does_the_same",
        "test_kafka_python": _IN_CLUSTERS + "test_kafka_python_does_the_same",
    },
    "groups of the consumer protocol (KIP-848)": {
        "test_librdkafka": "clients/test_consumer_protocol.py::"
        "test_members_come_and_go_and_only_what_must_moves",
    },
    "compacted topics": dict.fromkeys(("test_tidemark", *_OTHERS), _COMPACTED),
    "reads from an observer near by": dict.fromkeys(("test_tidemark", *_OTHERS), _OBSERVED),
    "SASL (PLAIN, SCRAM)": dict.fromkeys(("test_tidemark", "test_cli", *_OTHERS), _SASL),
    "users of the cluster": dict.fromkeys(("test_tidemark", *_OTHERS), _USERS),
    "TLS": dict.fromkeys(("test_tidemark", "test_cli", *_OTHERS, "test_kcat"), _TLS),
    "a user by its certificate": dict.fromkeys(("test_tidemark", "test_librdkafka"), _CERTIFICATES),
    "ACLs": dict.fromkeys(("test_tidemark", "test_cli", *_OTHERS, "test_kcat"), _ACLS),
}
"""Features whose tests lie in modules of their own, as each client's `module::test`."""


def matrix() -> str:
    """The table as Markdown: a mark where the client's module has a test of the feature's name."""
    present = {module: _tests(HERE / f"{module}.py") for module in CLIENTS}
    lines = [
        f"| | {' | '.join(CLIENTS.values())} |",
        f"|---|{':-:|' * len(CLIENTS)}",
    ]
    for test, feature in FEATURES.items():
        marks = " | ".join("✓" if test in present[module] else "" for module in CLIENTS)
        lines.append(f"| {feature} | {marks} |")
    for feature, shown_by in SHARED.items():
        marks = " | ".join("✓" if module in shown_by else "" for module in CLIENTS)
        lines.append(f"| {feature} | {marks} |")
    return "\n".join(lines) + "\n"


def unnamed() -> set[str]:
    """Tests that no row of the table stands for."""
    found = set().union(*(_tests(HERE / f"{module}.py") for module in CLIENTS))
    return found - set(FEATURES)


def missing() -> set[str]:
    """The tests in `SHARED` that are not there."""
    named = {each for shown_by in SHARED.values() for each in shown_by.values()}
    return {each for each in named if not _is_there(*each.split("::"))}


def _is_there(module: str, test: str) -> bool:
    path = HERE.parent / module
    return path.exists() and test in _tests(path)


def written(readme: str) -> str:
    """The README with the table put where its marks are."""
    before, _, rest = readme.partition(BEGIN)
    assert rest, "the README has lost the mark of its matrix"
    _, _, after = rest.partition(END)
    return before + BEGIN + matrix() + END + after


def _tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    functions = [
        node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {node.name for node in functions if node.name.startswith("test_")}


if __name__ == "__main__":
    README.write_text(written(README.read_text()))
