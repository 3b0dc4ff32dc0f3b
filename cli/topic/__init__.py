"""`tidemark topic`: create, list, describe, alter, add-partitions, trim, delete."""

import click

from tidemark.cli.topic.change import add_partitions, alter, create, delete
from tidemark.cli.topic.listing import list_
from tidemark.cli.topic.look import describe
from tidemark.cli.topic.trim import trim
from tidemark.cli.verbs import Verbs


@click.group(cls=Verbs)
def topic() -> None:
    """Create, look at, change and delete topics."""


for verb in (create, list_, describe, alter, add_partitions, trim, delete):
    topic.add_command(verb)
