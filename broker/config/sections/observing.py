"""Metrics, health and logs."""

from typing import Final

import attrs

from tidemark.broker.config.addresses import Address
from tidemark.broker.config.fields import setting
from tidemark.broker.config.kinds import AddressText, Optionally
from tidemark.partitions.state_machines.config_table import OneOf, whole_int

_SECTION: Final = "Metrics, health and logs"


@attrs.frozen(kw_only=True, slots=False, repr=False, eq=False)
class Observing:
    http_listen: Address | None = setting(  # noqa: RUF009 # makes an attrs field; frozen
        "http.listen",
        Optionally(AddressText()),
        Address("127.0.0.1", 9644),
        "Where `/metrics`, `/healthz` and `/readyz` are served; `none` turns them off.",
        section=_SECTION,
        aliases=("http",),
    )
    metrics_topics_max: int = setting(
        "metrics.topics.max",
        whole_int(0),
        500,
        "Topics that have labels of their own in the metrics; the rest are counted together "
        "under the topic `(other)`.",
        section=_SECTION,
    )
    metrics_partitions_max: int = setting(
        "metrics.partitions.max",
        whole_int(0),
        1000,
        "Partitions, and partitions of groups, that have series of their own in the metrics.",
        section=_SECTION,
    )
    metrics_groups_max: int = setting(
        "metrics.groups.max",
        whole_int(0),
        500,
        "Consumer groups that have series of their own in the metrics.",
        section=_SECTION,
    )
    logging_level: str = setting(
        "logging.level",
        OneOf(("debug", "info", "warning", "error")),
        "info",
        "The lowest level that is logged.",
        section=_SECTION,
    )
    logging_format: str = setting(
        "logging.format",
        OneOf(("auto", "console", "json")),
        "auto",
        "How log lines on standard error look; `auto` is for people on a terminal, JSON elsewhere.",
        section=_SECTION,
    )
