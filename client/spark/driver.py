"""The driver's questions to the cluster: which partitions there are, where they begin and end."""

import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import ParamSpec, Self, TypeVar, assert_never

from tidemark.client.blocking import BlockingClient, open_patient_client
from tidemark.client.descriptions import TopicDescription
from tidemark.client.offsets import AtTime, Beginning, End, Isolation, OffsetSpec
from tidemark.client.security.tls import UntrustedBroker
from tidemark.client.settings import ClientSettings
from tidemark.client.spark.options import SourceOptions
from tidemark.client.spark.ranges import OffsetRange
from tidemark.client.spark.selections import Assign, Subscribe, SubscribePattern
from tidemark.protocol.errors import ConfigError, ErrorCode, RequestError, TidemarkError
from tidemark.protocol.types import TopicPartition

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)


class DataLoss(TidemarkError):
    """Records that should be read are not there any more."""


class CannotReach(TidemarkError):
    """The cluster did not answer, or not as it must, for as long as the client tries."""


def report_loss(options: SourceOptions, what: str) -> None:
    """Raise `DataLoss`, or only log it where the option failOnDataLoss is false."""
    if options.fail_on_data_loss:
        raise DataLoss(f"{what}; set the option failOnDataLoss to false to go on without them")
    log.warning("%s", what)


@contextmanager
def explaining(client: ClientSettings, what: str) -> Iterator[None]:
    """Turn what did not pass for as long as the client tries into a sentence that helps."""
    try:
        yield
    except RequestError as error:
        if not error.code.retriable or error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise CannotReach(_unreachable(client, what, error)) from error
    except UntrustedBroker:
        raise  # at once, and it says what to do
    except OSError as error:
        raise CannotReach(_unreachable(client, what, error)) from error


def _unreachable(client: ClientSettings, what: str, error: Exception) -> str:
    return (
        f"{what}: {error}, for {client.retry_timeout_seconds:g} s; see that the brokers run and the"
        " partition has a leader (tidemark cluster status), or have it tried for longer with the"
        " option kafka.default.api.timeout.ms"
    )


class Driver:
    """Connects when first asked, and stays connected until closed."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._stack = ExitStack()
        self._client: BlockingClient | None = None
        self._ends: tuple[float, dict[TopicPartition, int]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client = None
        self._stack.close()

    def partitions(self) -> list[TopicPartition]:
        """The partitions to read, sorted. Raises `ConfigError` for one that is not there."""
        selection = self._options.selection
        match selection:
            case Assign(partitions):
                there = set(self._of_topics(sorted({tp.topic for tp in partitions}), "assign"))
                if missing := sorted(set(partitions) - there):
                    raise ConfigError(
                        f"the option assign names {', '.join(map(str, missing))}, which the topic"
                        " does not have; see tidemark topic describe"
                    )
                return list(partitions)
            case Subscribe(topics):
                return self._of_topics(topics, "subscribe")
            case SubscribePattern(pattern):
                every = self._run(self._connected().admin.list_topics)
                return _partitions_of(topic for topic in every if re.fullmatch(pattern, topic.name))
            case _:
                assert_never(selection)

    def _of_topics(self, topics: Sequence[str], option: str) -> list[TopicPartition]:
        try:
            return _partitions_of(self._run(self._connected().admin.describe_topics, topics))
        except RequestError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            raise ConfigError(
                f"the option {option} names a topic that is not there ({error}); create it, or"
                " correct the name"
            ) from error

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The log starts."""
        return self._list(partitions, Beginning())

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of what can be read."""
        return self._list(partitions, End())

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset of each partition with that time or a later one."""
        found = self._list_specs({tp: AtTime(time) for tp, time in times.items()})
        return {tp: offset if offset >= 0 else None for tp, offset in found.items()}

    def recent_ends(self) -> dict[TopicPartition, int]:
        """The ends of all partitions to read, at most `offset_cache_ms` old.

        Spark asks a stream ninety times a second, for the latest offset and again to report it.
        """
        age_max = self._options.offset_cache_ms / 1000
        if self._ends is None or time.monotonic() - self._ends[0] > age_max:
            return self.ends_now()
        return self._ends[1]

    def ends_now(self) -> dict[TopicPartition, int]:
        """The same, looked up at once."""
        ends = self.ends(self.partitions())
        self._ends = time.monotonic(), ends
        return ends

    def _list(
        self, partitions: Collection[TopicPartition], place: Beginning | End
    ) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        if isinstance(place, End) and self._options.level.is_confirmed:
            admin = self._connected().admin
            confirmed = self._run(admin.confirmed_ends, partitions)
            ends = {tp: int(end.high_watermark) for tp, end in confirmed.items()}
            if self._options.isolation is Isolation.READ_UNCOMMITTED:
                return ends
            stable = self._list_specs(dict.fromkeys(partitions, place))
            return {tp: min(end, stable[tp]) for tp, end in ends.items()}
        return self._list_specs(dict.fromkeys(partitions, place))

    def _list_specs(self, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        list_offsets = self._connected().admin.list_offsets
        found = self._run(list_offsets, specs, isolation=self._options.isolation)
        return {tp: int(listed.offset) for tp, listed in found.items()}

    def _run(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        with explaining(self._options.client, self._options.bootstrap):
            return self._connected().run(function, *args, **kwargs)

    def _connected(self) -> BlockingClient:
        if self._client is None:
            with explaining(self._options.client, self._options.bootstrap):
                self._client = self._stack.enter_context(
                    open_patient_client(
                        self._options.bootstrap,
                        patience_seconds=self._options.client.retry_timeout_seconds,
                        settings=self._options.client,
                    )
                )
        return self._client


def _partitions_of(topics: Iterable[TopicDescription]) -> list[TopicPartition]:
    return sorted(
        TopicPartition(topic.name, partition.partition)
        for topic in topics
        for partition in topic.partitions
    )


def check_within(options: SourceOptions, asked: OffsetRange, beginning: int, end: int) -> None:
    """Report what of a range the log, from `beginning` to `end`, does not have."""
    tp = asked.topic_partition
    there = f"it has the offsets from {beginning} to {end}"
    if asked.start < beginning:
        report_loss(
            options,
            f"{tp}: the records from {asked.start} to {min(beginning, asked.end)} are not there any"
            f" more (retention, or records deleted): {there}",
        )
    if max(asked.start, asked.end) > end:
        report_loss(
            options,
            f"{tp} ends at {end}, before the offset {max(asked.start, asked.end)} that is asked"
            f" for: {there} (was the topic made anew?)",
        )
