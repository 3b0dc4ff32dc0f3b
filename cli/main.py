"""The `tidemark` command itself: the table of nouns, the options they share, and the one place
where an exception becomes a line on standard error and an exit status.

A noun's module is imported when the noun is used, never to list it, so `tidemark --help` and
shell completion cost no more than click does.
"""

import gc
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Final, NamedTuple

import click
from click.shell_completion import shell_complete

from tidemark import __version__
from tidemark.cli.output import notice
from tidemark.cli.session import open_session, shared_options
from tidemark.protocol.errors import ErrorCode, RequestError, TidemarkError

FAILURE: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 128 + 2  # As the shell reports a command that SIGINT ended.
VERBOSE: Final = frozenset({"-v", "--verbose"})
COMPLETION: Final = "_TIDEMARK_COMPLETE"
BROKEN_PIPE: Final = 128 + 13  # And SIGPIPE: `tidemark consume … | head` ends this way.
# What is left to say when a minute of asking again was in vain.
_OF_A_CLUSTER_WITHOUT_MAJORITY: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)


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


def report(error: BaseException, *, verbose: bool) -> int:
    """Say on standard error what ended the command, in one line, or what a noun by itself takes;
    returns its exit status."""
    cause = most_telling(error)
    match cause:
        case click.exceptions.Exit():
            return cause.exit_code
        case SystemExit():
            return cause.code if isinstance(cause.code, int) else FAILURE
        case KeyboardInterrupt() | click.Abort():
            notice("")  # A terminal shows ^C, and the prompt behind it.
            return INTERRUPTED
        case BrokenPipeError():
            _silence_standard_output()
            return BROKEN_PIPE
        case click.exceptions.NoArgsIsHelpError():
            cause.show()
            return USAGE
    if verbose:
        traceback.print_exception(error)
    click.echo(f"tidemark: {one_line(cause)}", err=True)
    return USAGE if isinstance(cause, click.UsageError) else FAILURE


def most_telling(error: BaseException) -> BaseException:
    """The one exception to report of what may be a tree of groups, as trio's nurseries raise.

    An interrupt wins over everything, because it is what the user did; then an expected kind of
    failure over a bug, which may be no more than its consequence.
    """
    return min(_leaves(error), key=_rank)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    elif isinstance(error.__cause__, KeyboardInterrupt):
        # What is raised while a class is made arrives as a RuntimeError before Python 3.12.
        yield error.__cause__
    else:
        yield error


def _rank(error: BaseException) -> int:
    kinds: tuple[type[BaseException] | tuple[type[BaseException], ...], ...] = (
        (KeyboardInterrupt, SystemExit, click.Abort, click.exceptions.Exit),
        BrokenPipeError,
        (click.ClickException, TidemarkError),
        OSError,
    )
    return next((i for i, kind in enumerate(kinds) if isinstance(error, kind)), len(kinds))


def one_line(error: BaseException) -> str:
    """What went wrong, for a person, in one line."""
    match error:
        case click.UsageError(ctx=ctx):
            hint = f" Try '{ctx.command_path} --help'." if ctx else ""
            text = error.format_message()
            text = text + hint if text.endswith("?") else text.rstrip(".") + "." + hint
        case click.ClickException():
            text = error.format_message()
        case RequestError(code=code) if code in _OF_A_CLUSTER_WITHOUT_MAJORITY:
            text = f"{error}; 'tidemark cluster status' shows whether enough brokers are up"
        case RequestError(code=ErrorCode.MESSAGE_TOO_LARGE):
            text = (
                f"{error}; -X max.request.size=BYTES has 'tidemark produce' send larger requests, "
                "and the topic's max.message.bytes says what is taken"
            )
        case TidemarkError(__cause__=UnicodeEncodeError(object=argument)):
            text = f"{os.fsencode(argument)!r} is not UTF-8, which names and texts have to be"
        case TidemarkError():
            text = str(error)
        case OSError(strerror=str(reason)):
            text = f"{error.filename}: {reason}" if error.filename else reason
        case OSError():
            text = str(error) or type(error).__name__
        case _:
            text = f"a bug: {type(error).__name__}: {error} (-v shows where)"
    # An argument that is not UTF-8 shows as the escapes of its bytes, on whatever it is printed.
    return " ".join(text.split()).encode(errors="backslashreplace").decode()


def _silence_standard_output() -> None:
    """Keep the interpreter's last flush from failing on the pipe a second time."""
    # A test's stream is no real file; then nothing will be flushed to a pipe either.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
