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
    return "\n".join(lines) + "\n"


def unnamed() -> set[str]:
    """Tests that no row of the table stands for."""
    found = set().union(*(_tests(HERE / f"{module}.py") for module in CLIENTS))
    return found - set(FEATURES)


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
