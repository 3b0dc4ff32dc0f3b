"""The same through Spark Connect, and on executors in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession

from tidemark.client.blocking import BlockingClient
from tidemark.client.columns import read_topic, write_topic
from tidemark.client.spark import write_zip
from tidemark.testing import BlockingCluster

# The first test waits for the session.
pytestmark = pytest.mark.timeout(400)

COUNT = 1000


def fill(cluster: BlockingCluster, client: BlockingClient, topic: str) -> str:
    """Write rows to the topic; the name of an empty one, for their copies."""
    rows = {"key": [f"{n}" for n in range(COUNT)], "value": [f"v{n}" for n in range(COUNT)]}
    write_topic(cluster.bootstrap, topic, [pa.record_batch(rows)])
    client.run(client.admin.create_topic, f"{topic}-2", partitions=2)
    return f"{topic}-2"


def copied(cluster: BlockingCluster, topic: str) -> list[int]:
    return sorted(map(int, read_topic(cluster.bootstrap, topic).read_all()["key"].to_pylist()))


def test_spark_connect_reads_streams_and_writes(
    spark: SparkSession,
    tidemark_session: BlockingCluster,
    client: BlockingClient,
    topic: str,
    tmp_path: Path,
) -> None:
    target = fill(tidemark_session, client, topic)
    port = spark.conf.get("spark.connect.grpc.binding.port")
    remote = ConnectSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    options = {"kafka.bootstrap.servers": tidemark_session.bootstrap, "subscribe": topic}
    frame = remote.read.format("tidemark").options(**options).load()
    assert frame.where("partition < 3").count() == COUNT
    stream = remote.readStream.format("tidemark").options(**options, startingOffsets="earliest")
    query = (
        stream.load()
        .select("key", "value")
        .writeStream.format("tidemark")
        .option("bootstrap", tidemark_session.bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert copied(tidemark_session, target) == list(range(COUNT))
    remote.client.close()


def test_executors_elsewhere_read_and_write_with_the_package_they_were_sent(
    tidemark_session: BlockingCluster, client: BlockingClient, topic: str, tmp_path: Path
) -> None:
    """Beside a package for PySpark that cannot be imported, for which it finds none by its name."""
    target = fill(tidemark_session, client, topic)
    (tmp_path / "pyspark_broken.py").write_text("import nothing_of_this_name\n")
    paths = os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    program = [sys.executable, "-m", "tests.client.spark.on_cluster"]
    done = subprocess.run(
        [*program, tidemark_session.bootstrap, topic, target],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[3],
        env=os.environ | {"PYTHONPATH": paths},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "nothing_of_this_name" in done.stderr, "PySpark has met it"
    said = json.loads(done.stdout.splitlines()[-1])
    assert "tidemark.zip/tidemark/client/spark/sink.py" in said["imported"]
    assert copied(tidemark_session, target) == list(range(COUNT))


def test_what_is_shipped_is_all_that_a_task_imports(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "tidemark.zip")
    program = (
        f"import sys; sys.path.insert(0, {str(archive)!r})\n"
        "import tidemark.client.spark.task, tidemark.client.spark.sink, pyspark_tidemark\n"
        "ours = [m for n, m in sys.modules.items() if n.split('.')[0].endswith('tidemark')]\n"
        f"assert all({str(archive)!r} in (m.__file__ or '') for m in ours), ours\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
