"""A process that reads numbers, writes them elsewhere, and commits how far it is, in transactions.

`python -m tests.system.transforming BOOTSTRAP SOURCE TARGET PARTITION`. It runs until it is killed.
Another process with the same arguments takes its place: it fences it, and goes on where it was.
"""

import faulthandler
import signal
import sys

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

BATCH = 20
SECONDS = 30
STUCK_SECONDS = 2 * SECONDS


class Transformer:
    def __init__(self, bootstrap: str, source: str, target: str, partition: int) -> None:
        self._target = target
        self._place = TopicPartition(source, partition)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"{source}-to-{target}-{partition}",
                "transaction.timeout.ms": 10_000,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{source}-to-{target}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "reconnect.backoff.max.ms": 200,
            }
        )

    def run(self) -> None:
        # Whatever a process before this one has left open is aborted before its commits are read.
        self._producer.init_transactions(SECONDS)
        self._go_back()
        while True:
            messages = self._consumer.consume(BATCH, timeout=1.0)
            read = [each for each in messages if each.error() is None]
            if read:
                # librdkafka can wait for a coordinator past the time it was given, until some
                # broker changes its state (its issues 5456 and 5511): another process goes on then.
                faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
                self._transform(read)
                faulthandler.cancel_dump_traceback_later()

    def _go_back(self) -> None:
        """To where the group is committed."""
        (committed,) = self._consumer.committed([self._place], SECONDS)
        start = max(committed.offset, 0)
        self._consumer.assign([TopicPartition(self._place.topic, self._place.partition, start)])

    def _transform(self, read: list[Message]) -> None:
        self._producer.begin_transaction()
        try:
            for message in read:
                self._producer.produce(
                    self._target, message.value(), partition=self._place.partition
                )
            self._producer.send_offsets_to_transaction(
                self._consumer.position([self._place]),
                self._consumer.consumer_group_metadata(),
                SECONDS,
            )
            self._commit()
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._producer.abort_transaction(SECONDS)
            self._go_back()

    def _commit(self) -> None:
        while True:
            try:
                self._producer.commit_transaction(SECONDS)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)
    bootstrap, source, target, partition = sys.argv[1:]
    Transformer(bootstrap, source, target, int(partition)).run()
