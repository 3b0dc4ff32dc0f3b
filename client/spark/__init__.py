"""Topics as a source of PySpark, without a jar.

```python
from tidemark.client.spark import session

spark = session()
spark.read.format("tidemark").option("bootstrap", "127.0.0.1:9092").option("subscribe", "t").load()
```

In any other session `spark.read.format("tidemark")` works too: PySpark finds the source in the
package `pyspark_tidemark` by its name. Where that fails (it gives up all such packages if one of
them cannot be imported), `register(spark)` does it by hand. `ship(spark)` gives the package to
executors that do not have it. `GroupCommits` shows a stream's lag as a consumer group's.

This package is the only place that imports pyspark.
"""

from tidemark.protocol.extras import needs_extra

with needs_extra("spark", "numpy", "py4j", "pyarrow", "pyspark"):
    from tidemark.client.spark.committing import GroupCommits
    from tidemark.client.spark.session import register, session
    from tidemark.client.spark.shipping import ship, write_zip

__all__ = ["GroupCommits", "register", "session", "ship", "write_zip"]
