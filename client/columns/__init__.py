"""Topics as Arrow columns, without a Python object per record; needs the extra `columns`.

```python
from tidemark.client.columns import read_topic, write_topic

read_topic("127.0.0.1:9092", "greetings").read_pandas()
polars.DataFrame(read_topic("127.0.0.1:9092", "greetings"))
duckdb.from_arrow(read_topic("127.0.0.1:9092", "greetings")).aggregate("count(*)")
write_topic("127.0.0.1:9092", "copies", read_topic("127.0.0.1:9092", "greetings"))
```

All of it is on blocking sockets. With `Consumer.fetch_batches`, `to_columns` is how a trio consumer
reads columns.
"""

from tidemark.protocol.extras import needs_extra

with needs_extra("columns", "numpy", "pyarrow"):
    from tidemark.client.columns.reading import COLUMNS, read_columns, to_columns
    from tidemark.client.columns.topics import read_topic
    from tidemark.client.columns.writing import ColumnsWriter, open_writer, write_topic

__all__ = [
    "COLUMNS",
    "ColumnsWriter",
    "open_writer",
    "read_columns",
    "read_topic",
    "to_columns",
    "write_topic",
]
