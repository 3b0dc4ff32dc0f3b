"""`tidemark broker describe` and `alter`: the settings of brokers, and those that change while they
run."""

import click

from tidemark.cli.configs import config_row, config_section
from tidemark.cli.numbers import Whole
from tidemark.cli.output import Form, notice, output_option, print_sections
from tidemark.cli.pairs import changes_options, require_changes
from tidemark.cli.session import Session, talks_to_brokers

_broker_argument = click.argument("node_id", type=Whole(0), metavar="[BROKER]", required=False)


@click.command()
@_broker_argument
@output_option
@talks_to_brokers
@click.pass_obj
def describe(session: Session, node_id: int | None, form: Form) -> None:
    """Show a broker's settings that are not at their default, and where they come from.

    `-o wide` shows all. Without BROKER it is what was set for all brokers while they ran, by
    `tidemark broker alter`.
    """
    entries = session.run(lambda client: client.admin.describe_broker_configs(node_id))
    print_sections(
        {"broker": node_id, "configs": [config_row(entry) for entry in entries]},
        {"broker": "all" if node_id is None else node_id},
        [config_section(entries, form, with_source=True)],
        form,
    )


@click.command()
@_broker_argument
@changes_options("Set a config; repeatable.")
@talks_to_brokers
@click.pass_obj
def alter(
    session: Session,
    node_id: int | None,
    configs: dict[str, str],
    unset: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Change the defaults that a broker has for topics, as log.retention.ms; without BROKER, those
    of all.

    They hold at once, and outlive restarts. A topic's own config comes first, then what is set for
    the broker, for all brokers, and in its file. Throttles of new replicas are set here, too; all
    other settings are changed in the file.
    """
    require_changes(configs, unset)
    session.run(
        lambda client: client.admin.alter_broker_configs(
            node_id, configs, unset=unset, validate_only=dry_run
        )
    )
    whose = "all brokers" if node_id is None else f"broker {node_id}"
    notice(f"{whose} could be altered" if dry_run else f"altered {whose}")
