"""Run by `test_elsewhere.py`, in a process of its own: a session can have one master only.

`python -m tests.client.spark.on_cluster BOOTSTRAP FROM TO` copies a topic on executors in processes
of their own, which are sent the package, and prints as JSON how that went.
"""

import json
import sys

from tidemark.client.spark import session, ship


def main(bootstrap: str, source: str, target: str) -> None:
    spark = session(
        "local-cluster[1,1,512]",
        config={
            "spark.ui.enabled": "false",
            "spark.executor.memory": "512m",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    try:
        ship(spark)
        frame = (
            spark.read.format("tidemark")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("minPartitions", "2")
            .load(subscribe=source)
        )
        writer = frame.select("key", "value").write.format("tidemark").mode("append")
        writer.option("kafka.bootstrap.servers", bootstrap).option("topic", target).save()
        where = spark.sparkContext.parallelize([0], 1).map(_imported_from).first()
        print(json.dumps({"imported": where}))
    finally:
        spark.stop()


def _imported_from(_: int) -> str:
    import tidemark.client.spark.sink

    return str(tidemark.client.spark.sink.__file__)


if __name__ == "__main__":
    main(*sys.argv[1:])
