"""`tidemark group`: list, describe, alter, delete, and move the offsets of consumer groups."""

import click

from tidemark.cli.group.change import alter, delete
from tidemark.cli.group.look import describe, list_
from tidemark.cli.group.reset import reset
from tidemark.cli.verbs import Verbs


@click.group(cls=Verbs)
def group() -> None:
    """Look at consumer groups and move their offsets."""


for verb in (list_, describe, alter, delete, reset):
    group.add_command(verb)
