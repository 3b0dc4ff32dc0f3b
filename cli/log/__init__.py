"""`tidemark log`: look into a partition's files, without a broker and without changing anything."""

import click

from tidemark.cli.log.dump import dump_
from tidemark.cli.log.verify import verify_
from tidemark.cli.verbs import Verbs


@click.group(cls=Verbs)
def log() -> None:
    """Look into a partition's files, without a broker."""


log.add_command(dump_)
log.add_command(verify_)
