"""What was counted while requests were served, at a scrape."""

import platform
from collections.abc import Iterator

from prometheus_client.core import InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from tidemark import __version__
from tidemark.broker.metrics.counts import Count
from tidemark.broker.metrics.families import (
    counter,
    counters,
    gauge,
    gauges,
    histogram,
    histograms,
)
from tidemark.broker.metrics.metrics import Metrics


class CountsCollector(Collector):
    """The families of a `Metrics`. An API that nobody has called has no series."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._broker()
        yield from self._requests()
        yield from self._topics()
        yield from self._reads()
        yield from self._fetch_sessions()
        yield from self._quotas()
        yield from self._connections()
        yield from self._peers()
        yield from self._disk()
        yield from self._moves()

    def _broker(self) -> Iterator[Metric]:
        build = InfoMetricFamily("tidemark_build", "The versions that this broker runs.")
        build.add_metric([], {"version": __version__, "python": platform.python_version()})
        yield build

    def _requests(self) -> Iterator[Metric]:
        # Copies: the broker adds to these while the scrape's thread goes through them.
        apis = {name: api for name, api in self._metrics.apis.copy().items() if api.requests.value}
        requests = {name: api.requests for name, api in apis.items()}
        errors = {name: api.errors for name, api in apis.items()}
        latency = {name: api.latency for name, api in apis.items()}
        yield counters("tidemark_requests", "Requests received.", "api", requests)
        yield counters(
            "tidemark_request_errors",
            "Requests that failed as a whole: refused, malformed, or by our own fault.",
            "api",
            errors,
        )
        yield histograms(
            "tidemark_request_duration_seconds",
            "From a request's last byte to its answer, with all waiting: for the disk, for other "
            "members of a group, for new records in a long poll.",
            "api",
            latency,
        )

    def _topics(self) -> Iterator[Metric]:
        topics = self._metrics.topics.copy()
        bytes_in = {name: topic.bytes_in for name, topic in topics.items()}
        bytes_out = {name: topic.bytes_out for name, topic in topics.items()}
        records_in = {name: topic.records_in for name, topic in topics.items()}
        records_out = {name: topic.records_out for name, topic in topics.items()}
        yield counters(
            "tidemark_topic_in_bytes", "Bytes of record batches produced.", "topic", bytes_in
        )
        yield counters(
            "tidemark_topic_out_bytes", "Bytes of record batches fetched.", "topic", bytes_out
        )
        yield counters("tidemark_topic_in_records", "Records produced.", "topic", records_in)
        yield counters("tidemark_topic_out_records", "Records fetched.", "topic", records_out)

    def _reads(self) -> Iterator[Metric]:
        reads, rounds = self._metrics.reads, Count()
        rounds.value = reads.rounds()
        yield counters(
            "tidemark_fetched_partitions",
            "Partitions of fetches that got records, by what this broker is for them.",
            "role",
            reads.fetched,
        )
        yield counters(
            "tidemark_fetched_bytes",
            "Bytes of record batches fetched, by what this broker is for them.",
            "role",
            reads.fetched_bytes,
        )
        yield counter(
            "tidemark_fetches_sent_on",
            "Partitions of fetches whose readers were sent to a replica near them.",
            reads.sent_on,
        )
        yield counter(
            "tidemark_fetches_sent_back",
            "Partitions of fetches whose readers were sent back to the leader: the replica here is "
            "too far behind.",
            reads.sent_back,
        )
        yield counter(
            "tidemark_confirm_rounds",
            "How often a majority was asked whether this broker still leads; all who ask at a time "
            "share a round.",
            rounds,
        )
        yield counter(
            "tidemark_confirmed_reads",
            "Partitions of which this broker was certain that it leads them, when it was asked.",
            reads.confirmed,
        )
        yield counter(
            "tidemark_unconfirmed_reads",
            "Partitions of which it could not be certain.",
            reads.unconfirmed,
        )

    def _fetch_sessions(self) -> Iterator[Metric]:
        reads, evicted = self._metrics.reads, Count()
        evicted.value = reads.evicted_sessions()
        yield gauge(
            "tidemark_fetch_sessions",
            "Consumers of which it is remembered what they read.",
            reads.fetch_sessions(),
        )
        yield counter(
            "tidemark_fetch_sessions_evicted", "Those that had to make room for others.", evicted
        )

    def _quotas(self) -> Iterator[Metric]:
        quotas, seconds = self._metrics.quotas, {}
        for why, count in quotas.throttle_ms.items():
            seconds[str(why)] = Count()
            seconds[str(why)].value = count.value // 1000
        yield counters(
            "tidemark_throttled_requests",
            "Requests whose clients were told to hold back, by the quota that they were over.",
            "quota",
            {str(why): count for why, count in quotas.throttled.items()},
        )
        yield counters(
            "tidemark_throttle_seconds",
            "For how long they were told to, in whole seconds.",
            "quota",
            seconds,
        )
        yield gauge(
            "tidemark_throttled_connections",
            "Connections that are not read now, because their clients are over a quota.",
            quotas.held_back,
        )

    def _connections(self) -> Iterator[Metric]:
        metrics = self._metrics
        yield gauge("tidemark_connections", "Connections open now.", metrics.connections)
        yield counter(
            "tidemark_connections_opened", "Connections accepted.", metrics.connections_opened
        )
        yield counters(
            "tidemark_connections_closed",
            "Connections closed, by why.",
            "reason",
            {str(reason): count for reason, count in metrics.connections_closed.items()},
        )
        yield counters(
            "tidemark_bad_input",
            "What clients sent and was not served, by what was wrong with it.",
            "kind",
            {str(kind): count for kind, count in metrics.bad_input.items()},
        )
        yield counter("tidemark_received_bytes", "Bytes read from clients.", metrics.received_bytes)
        yield counter("tidemark_sent_bytes", "Bytes written to clients.", metrics.sent_bytes)

    def _peers(self) -> Iterator[Metric]:
        peers = self._metrics.peers
        yield gauges(
            "tidemark_peer_up",
            "Whether another broker is up for this one: connected both ways.",
            "peer",
            {str(node): float(is_up) for node, is_up in peers.up.copy().items()},
        )
        yield counter(
            "tidemark_peer_connection_attempts",
            "Connections to other brokers that were tried.",
            peers.attempts,
        )
        yield counters(
            "tidemark_peer_connections_ended",
            "Connections to and from other brokers that have ended, by why.",
            "reason",
            {str(reason): count for reason, count in peers.ended.items()},
        )
        yield counter(
            "tidemark_peer_refused_hellos",
            "Brokers that came and were refused: of another cluster, or not who they should be.",
            peers.refused_hellos,
        )
        yield counter(
            "tidemark_peer_received_bytes", "Bytes read from other brokers.", peers.received_bytes
        )
        yield counter(
            "tidemark_peer_sent_bytes", "Bytes written to other brokers.", peers.sent_bytes
        )
        yield counter(
            "tidemark_peer_received_frames",
            "Frames from other brokers; many groups may share one.",
            peers.received_frames,
        )
        yield counter("tidemark_peer_sent_frames", "Frames to other brokers.", peers.sent_frames)

    def _moves(self) -> Iterator[Metric]:
        moves = self._metrics.moves
        yield counters(
            "tidemark_leader_moves",
            "Leaders that were to go from this broker to another: `done`; `failed`, where this "
            "broker leads on; or `left`, where a third one leads.",
            "outcome",
            {str(ending): count for ending, count in moves.ended.items()},
        )
        yield gauges(
            "tidemark_leader_moves_running",
            "Leaders that are on their way from this broker, by how far that is.",
            "phase",
            {str(phase): float(number) for phase, number in moves.running.items()},
        )
        yield histogram(
            "tidemark_leader_move_pause_seconds",
            "For how long a move held a partition's writes in all.",
            moves.pause,
        )
        yield gauge(
            "tidemark_held_produce_requests",
            "Produce requests that wait for a leader to go, or to begin to serve.",
            moves.held_requests,
        )
        yield gauge(
            "tidemark_held_produce_bytes", "How large these requests are.", moves.held_bytes
        )

    def _disk(self) -> Iterator[Metric]:
        metrics = self._metrics
        yield histogram(
            "tidemark_flush_duration_seconds", "How long a sync to the disk took.", metrics.flush
        )
        yield counter(
            "tidemark_flushed_logs",
            "Rounds of the broker's loop of which something was synced, for however many logs; by "
            "the number of flushes, the size of a group commit.",
            metrics.flushed_turns,
        )
        yield counter(
            "tidemark_storage_errors",
            "Appends, reads and openings that a disk or broken files did not allow.",
            metrics.storage_errors,
        )
        yield gauge(
            "tidemark_recovery_duration_seconds",
            "How long this broker took to recover its logs when it started.",
            metrics.recovery_seconds,
        )
        yield gauge(
            "tidemark_recovery_read_bytes",
            "Bytes of log that were checked when this broker started.",
            metrics.recovered_bytes,
        )
        yield gauge(
            "tidemark_recovery_cut_bytes",
            "Bytes of torn tails that were cut off when this broker started.",
            metrics.truncated_bytes,
        )
