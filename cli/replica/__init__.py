"""`tidemark replica`: which brokers hold a partition; move, add and remove replicas."""

import click

from tidemark.cli.replica.change import add, cancel, move, remove
from tidemark.cli.replica.look import list_, status
from tidemark.cli.verbs import Verbs


@click.group(cls=Verbs)
def replica() -> None:
    """See which brokers hold a partition; move, add and remove replicas.

    A partition is written and read as ever while its replicas move. The new brokers are sent its
    log first, no faster than `reassignment.bytes.per.second` for each broker that sends; then its
    voters change, and the brokers that left delete their files. It goes on by itself, whichever
    broker is restarted meanwhile.
    """


for verb in (move, add, remove, cancel, status, list_):
    replica.add_command(verb)
