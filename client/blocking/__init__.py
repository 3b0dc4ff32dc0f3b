"""The client for code without trio, twice, because it is wanted for two different things.

**Scripts** want everything: admin calls, producers, consumers. `open_client` runs the trio client
in a thread of its own and hands each call over, so nothing is written twice and both behave alike.
A call costs two thread switches, some 60 µs, which a network round trip hides; where it would be
paid per record (`send_all`, iterating a consumer) many records cross at a time.

**Worker processes** that read a partition in a loop (a Spark task) want only that: connect, ask who
leads, fetch. There, a second thread would compete with the decoding for the interpreter, and a
process that was forked from a threaded one must not count on threads. So `connect` and
`read_batches` are plain blocking sockets around the same sans-I/O `Wire`.

```python
with open_client("127.0.0.1:9092") as client:
    client.run(client.admin.create_topic, "greetings", partitions=3)
    with client.producer() as producer:
        producer.send("greetings", b"hello").wait()
    with client.consumer("greetings", until_end=True) as consumer:
        for record in consumer:
            print(record.value)
```
"""

from tidemark.client.blocking.client import BlockingClient, open_client
from tidemark.client.blocking.connection import BlockingConnection, connect
from tidemark.client.blocking.consumer import BlockingConsumer
from tidemark.client.blocking.kept import KeptConnections
from tidemark.client.blocking.patience import open_patient_client
from tidemark.client.blocking.producer import BlockingDelivery, BlockingProducer
from tidemark.client.blocking.reading import read_batches

__all__ = [
    "BlockingClient",
    "BlockingConnection",
    "BlockingConsumer",
    "BlockingDelivery",
    "BlockingProducer",
    "KeptConnections",
    "connect",
    "open_client",
    "open_patient_client",
    "read_batches",
]
