"""How far a stream has come, as the commits of a consumer group: for those who watch its lag.

Spark tells a source of a batch that is done when the next one is planned, and of a query's last
batch never. It tells listeners of each. So this is a listener, and no option of the source.
"""

import json
import logging

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tidemark.client.blocking import open_client
from tidemark.client.settings import ClientSettings
from tidemark.client.spark.stream import from_json
from tidemark.protocol.errors import TidemarkError
from tidemark.protocol.types import Offset, TopicPartition

log = logging.getLogger(__name__)


class GroupCommits(StreamingQueryListener):
    """Commits the ends of batches that are done, for a group that nobody is a member of.

    ```python
    spark.streams.addListener(GroupCommits("127.0.0.1:9092", "copies", query="copy"))
    ```

    It is for looking at (`tidemark group describe copies`): a query goes on from its checkpoint,
    not from here. Without a `query`, which is the name that one was given, it commits for all
    queries of the session that read with `format("tidemark")`. What cannot be committed is logged.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        *,
        query: str | None = None,
        settings: ClientSettings | None = None,
    ) -> None:
        self._bootstrap = bootstrap
        self._group = group
        self._query = query
        self._settings = settings

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        if self._query not in (None, progress.name) or not progress.numInputRows:
            return
        ends: dict[TopicPartition, Offset] = {}
        for source in progress.sources:
            ends |= {tp: Offset(end) for tp, end in read_end(source.endOffset).items()}
        if not ends:
            return
        try:
            with open_client(self._bootstrap, settings=self._settings) as client:
                client.run(client.admin.alter_group_offsets, self._group, ends)
        except (OSError, TidemarkError) as error:
            log.warning("group %s: batch %d: %s", self._group, progress.batchId, error)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing new is read."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Its last batch has been told of."""


def read_end(text: str | None) -> dict[TopicPartition, int]:
    """The offsets of a source's end in a progress report; none of a source that is not this."""
    try:
        end = json.loads(text or "")
        return from_json(end)
    except (ValueError, AttributeError):
        return {}
