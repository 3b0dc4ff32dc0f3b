"""List and describe groups."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import click

from tidemark.cli.arguments import Name
from tidemark.cli.configs import config_row, config_section
from tidemark.cli.formats.times import strftime
from tidemark.cli.lookup import Extent, extents_of_existing
from tidemark.cli.output import (
    Column,
    Form,
    Json,
    Section,
    output_option,
    print_rows,
    print_sections,
)
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.client import (
    Client,
    CommittedOffset,
    ConfigEntry,
    GroupDescription,
    MemberDescription,
    RebalanceDescription,
    RequestError,
    TopicPartition,
)

_STATES: Final = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Assigning",
    "Reconciling",
    "Dead",
)


@click.command("list")
@click.option(
    "-s",
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    metavar="STATE",
    help=f"Only those in this state; repeatable. One of {', '.join(_STATES)}.",
)
@output_option
@talks_to_brokers
@click.pass_obj
def list_(session: Session, states: tuple[str, ...], form: Form) -> None:
    """List groups."""
    groups = session.run(lambda client: client.admin.list_groups(states=states))
    rows: list[dict[str, Json]] = [
        {
            "group": listed.group,
            "state": listed.state or None,
            "protocol": listed.protocol_type or None,
            "type": listed.kind,
            "coordinator": listed.coordinator,
        }
        for listed in groups
    ]
    columns = [
        Column("group"),
        Column("state"),
        Column("protocol"),
        Column("type"),
        Column("coordinator", wide=True),
    ]
    print_rows(rows, columns, form)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What there is to say of a group."""

    description: GroupDescription
    rebalances: Sequence[RebalanceDescription]
    committed: Mapping[TopicPartition, CommittedOffset]
    extents: Mapping[TopicPartition, Extent]
    configs: Sequence[ConfigEntry]

    def partitions(self) -> list[dict[str, Json]]:
        """A row for each partition that is assigned or committed, with its lag."""
        owners = {at: member for member in self.description.members for at in member.assignment}
        return [
            {
                "topic": at.topic,
                "partition": at.partition,
                **self._progress(at),
                **_owner(owners.get(at)),
            }
            for at in sorted({*owners, *self.committed})
        ]

    def _progress(self, at: TopicPartition) -> dict[str, Json]:
        committed, extent = self.committed.get(at), self.extents.get(at)
        # Records that were deleted before the group came to them are not behind it any more.
        lag = (
            extent.end - max(committed.offset, extent.start)
            if committed is not None and extent is not None
            else None
        )
        return {
            "committed": committed.offset if committed else None,
            "start": extent.start if extent else None,
            "end": extent.end if extent else None,
            "lag": max(lag, 0) if lag is not None else None,
        }


def _owner(member: MemberDescription | None) -> dict[str, Json]:
    return {
        "member": member.member_id if member else None,
        "instance": member.instance_id if member else None,
        "client": member.client_id if member else None,
        "host": member.client_host if member else None,
    }


def _rebalance(each: RebalanceDescription) -> dict[str, Json]:
    """What began it; in the wide form and in JSON all that is known."""
    more = f" and {each.more_reasons} more" if each.more_reasons else ""
    return {
        "generation": each.generation,
        "time": strftime(each.at_ms, "%Y-%m-%dT%H:%M:%SZ"),
        "why": "; ".join(each.reasons) + more,
    }


@click.command()
@click.argument("name", type=Name(), metavar="GROUP")
@output_option
@talks_to_brokers
@click.pass_obj
def describe(session: Session, name: str, form: Form) -> None:
    """Show a group's state, its members, and how far behind it is.

    LAG is how many offsets there are from the group's commit to the end of a partition. TOTAL-LAG
    is the sum over partitions that have a commit, and `-` where none has.
    """
    facts = session.run(lambda client: _gather(client, name))
    rows = facts.partitions()
    lags = [row["lag"] for row in rows if isinstance(row["lag"], int)]
    summary: dict[str, Json] = {
        "group": name,
        "state": facts.description.state,
        "protocol": facts.description.protocol_type or None,
        "type": facts.description.kind,
        "assignor": facts.description.assignor or None,
        "coordinator": facts.description.coordinator,
        "members": len(facts.description.members),
        "total_lag": sum(lags) if lags else None,
    }
    members: list[dict[str, Json]] = [
        {**_owner(member), "partitions": [str(at) for at in member.assignment]}
        for member in facts.description.members
    ]
    rebalances = [_rebalance(each) for each in reversed(facts.rebalances)]
    print_sections(
        {
            **summary,
            "members": members,
            "partitions": rows,
            "rebalances": rebalances,
            "configs": [config_row(entry) for entry in facts.configs],
        },
        {key.replace("_", "-"): value for key, value in summary.items()},
        [
            Section(
                title="partitions",
                rows=rows,
                columns=[
                    Column("topic"),
                    Column("partition"),
                    Column("committed"),
                    Column("start", wide=True),
                    Column("end"),
                    Column("lag"),
                    Column("member", wide=True),
                    Column("client"),
                    Column("host"),
                ],
            ),
            Section(
                title="members",
                rows=members if form is Form.WIDE else [],
                columns=[Column(key) for key in ("member", "instance", "client", "host")],
            ),
            Section(
                title="rebalances" if form is Form.WIDE else "last rebalance",
                rows=rebalances if form is Form.WIDE else rebalances[:1],
                columns=[Column("generation"), Column("time"), Column("why")],
            ),
            config_section(facts.configs, form, with_source=False),
        ],
        form,
    )


async def _gather(client: Client, name: str) -> _Facts:
    description = await client.admin.describe_group(name)
    committed = await client.admin.list_group_offsets(name)
    partitions = {at for member in description.members for at in member.assignment} | {*committed}
    rebalances = await client.admin.describe_rebalances(name)
    return _Facts(
        description,
        rebalances,
        committed,
        await extents_of_existing(client.admin, partitions),
        await _configs(client, name),
    )


async def _configs(client: Client, name: str) -> Sequence[ConfigEntry]:
    """None where groups have no configs, or this user may not see them."""
    with suppress(RequestError):
        return await client.admin.describe_group_configs(name)
    return ()
