"""The `tidemark` command itself: the table of nouns, the options they share, and the one place
where every exception arrives (`failures.py` says it).

A noun's module is imported when the noun is used, never to list it, so `tidemark --help` and
shell completion cost no more than click does.
"""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click
from click.shell_completion import shell_complete

from tidemark import __version__
from tidemark.cli.failures import STANDARD_OUTPUT, report
from tidemark.cli.session import open_session, shared_options

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

VERBOSE: Final = frozenset({"-v", "--verbose"})
COMPLETION: Final = "_TIDEMARK_COMPLETE"


class Noun(NamedTuple):
    """Where a top-level command is, and the line that `--help` shows for it."""

    where: str
    help: str


NOUNS: Final = {
    "serve": Noun("tidemark.cli.broker:serve", "Run a broker."),
    "topic": Noun("tidemark.cli.topic:topic", "Create, look at, change and delete topics."),
    "produce": Noun("tidemark.cli.produce:produce", "Write records to a topic."),
    "consume": Noun("tidemark.cli.consume:consume", "Print a topic's records."),
    "export": Noun("tidemark.cli.export:export", "Write a topic's records to a Parquet file."),
    "group": Noun("tidemark.cli.group:group", "Look at consumer groups and move their offsets."),
    "txn": Noun("tidemark.cli.txn:txn", "List transactions, and end those that hang."),
    "cluster": Noun("tidemark.cli.cluster:cluster", "Look at the cluster as a whole."),
    "top": Noun(
        "tidemark.cli.top:top", "Watch brokers, the busiest topics and lagging groups, live."
    ),
    "broker": Noun(
        "tidemark.cli.broker_states:broker",
        "Look at brokers, drain them before they are stopped, and let them go.",
    ),
    "leader": Noun(
        "tidemark.cli.leader:leader", "See which brokers lead partitions, and move leaders."
    ),
    "replica": Noun(
        "tidemark.cli.replica:replica",
        "See which brokers hold a partition; move, add and remove replicas.",
    ),
    "quota": Noun(
        "tidemark.cli.quota:quota",
        "Limit what users and clients may send, fetch, and use of the processors.",
    ),
    "user": Noun("tidemark.cli.user:user", "See and change who can log in."),
    "acl": Noun("tidemark.cli.acl:acl", "See and change who is allowed to do what."),
    "bench": Noun(
        "tidemark.cli.bench:bench",
        "Measure throughput, or latency at a steady rate, on a topic of its own.",
    ),
    "demo": Noun(
        "tidemark.cli.demo:demo",
        "Start three brokers, kill one that leads, and see that no record is lost.",
    ),
    "sim": Noun(
        "tidemark.cli.sim:sim", "Run clusters under simulated faults, and report what broke."
    ),
    "log": Noun("tidemark.cli.log:log", "Look into a partition's files, without a broker."),
}


class Nouns(click.Group):
    """The top-level group: its commands are named in a table and imported one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(NOUNS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        noun = NOUNS.get(cmd_name)
        if noun is None:
            return None
        module, _, attribute = noun.where.partition(":")
        with _no_collection():
            command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        near = () if name in NOUNS else _near(name)
        if near and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{name}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, noun.help) for name, noun in NOUNS.items()])


def _near(name: str) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(name, NOUNS, n=1)


@contextmanager
def _no_collection() -> Iterator[None]:
    """An import leaves nothing to collect; looking for it took a twentieth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@click.command(
    cls=Nouns,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command has its own --help. Times are UTC unless they say otherwise.",
)
@shared_options
@click.option(*VERBOSE, is_flag=True, expose_value=False, help="Show where a failure came from.")
@click.version_option(__version__, prog_name="tidemark", message="%(prog)s %(version)s")
@click.pass_context
def cli(
    ctx: click.Context,
    bootstrap: str | None,
    client_config: Path | None,
    pairs: tuple[str, ...],
) -> None:
    """Tidemark: a log broker that speaks the Kafka protocol, and its tools.

    All commands but `serve`, `demo`, `sim` and `log` work against Kafka's brokers, too, as far as
    those support what is asked of them.
    """
    ctx.obj = open_session(bootstrap, client_config, pairs)


def main() -> None:
    """The console script: run, and leave with the command's exit status."""
    _open_closed_streams()
    _name_standard_output()
    _escape_what_cannot_be_encoded()
    status = run(sys.argv[1:])
    # The interpreter looks for garbage once more when it ends; not through all that was imported.
    gc.freeze()
    sys.exit(status)


def _open_closed_streams() -> None:
    """Where standard streams were closed, as with `<&-`, have them be empty and swallow everything.

    Python has none then, and the first file or socket that is opened would be in their place: what
    is printed later would be written into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # to the end


class _StandardOutput(FileIO):
    """Says of a write that fails that it was this one: a full disk here is not the broker's."""

    def write(self, data: "ReadableBuffer") -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = STANDARD_OUTPUT
            raise


def _name_standard_output() -> None:
    """Also where Python writes without a buffer, as in many a container."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout is sys.__stdout__:
        old, raw = sys.stdout, _StandardOutput(sys.stdout.fileno(), "wb", closefd=False)
        sys.stdout = TextIOWrapper(
            BufferedWriter(raw),
            encoding=old.encoding,
            errors=old.errors,
            line_buffering=old.line_buffering,
        )


def _escape_what_cannot_be_encoded() -> None:
    """Where a terminal is not UTF-8, a name or an ellipsis that it does not have is no failure."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def run(arguments: Sequence[str]) -> int:
    """Run one command line; whatever happens is reported here. Returns the exit status."""
    if instruction := os.environ.get(COMPLETION):
        return shell_complete(cli, {}, "tidemark", COMPLETION, instruction)
    try:
        # Not `cli.main`, which has its own words for what is reported here.
        with cli.make_context("tidemark", list(arguments)) as ctx:
            cli.invoke(ctx)
        sys.stdout.flush()
    except BaseException as error:
        # Looked for by hand, because a failure may come before the options are known. Where it
        # was another option's argument, a traceback too many does no harm.
        return report(error, verbose=not VERBOSE.isdisjoint(arguments))
    return 0


if __name__ == "__main__":
    main()
