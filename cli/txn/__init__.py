"""`tidemark txn`: what transactions are open, and ending those that should not be."""

import click

from tidemark.cli.txn.abort import abort
from tidemark.cli.txn.look import describe, list_
from tidemark.cli.verbs import Verbs


@click.group(cls=Verbs)
def txn() -> None:
    """List transactions, and end those that hang."""


for verb in (list_, describe, abort):
    txn.add_command(verb)
