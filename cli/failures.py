"""What a command that fails says: one line on standard error, and an exit status."""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import click

from tidemark.cli.output import notice
from tidemark.protocol.errors import ErrorCode, RequestError, TidemarkError

FAILURE: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 128 + 2  # As the shell reports a command that SIGINT ended.
BROKEN_PIPE: Final = 128 + 13  # And SIGPIPE: `tidemark consume … | head` ends this way.
STANDARD_OUTPUT: Final = "standard output"
"""What errors name in place of a file, where that cannot be written."""
# What is left to say when a minute of asking again was in vain.
_OF_A_CLUSTER_WITHOUT_MAJORITY: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)


def report(error: BaseException, *, verbose: bool) -> int:
    """Say on standard error what ended the command, in one line, or what a noun by itself takes;
    returns its exit status."""
    cause = most_telling(error)
    match cause:
        case click.exceptions.Exit():
            if verbose and cause.__cause__ is not None:  # what `each.py` has said
                traceback.print_exception(cause.__cause__)
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
        case OSError(filename=filename) if filename == STANDARD_OUTPUT:
            _silence_standard_output()
    if verbose:
        traceback.print_exception(error)
    click.echo(f"tidemark: {one_line(cause)}", err=True)
    return USAGE if isinstance(cause, click.UsageError) else FAILURE


@contextmanager
def advising(code: ErrorCode, advice: str) -> Iterator[None]:
    """Have a failure of this code that comes out of the block say what to do about it."""
    try:
        yield
    except (RequestError, BaseExceptionGroup) as error:
        for each in _leaves(error):
            if isinstance(each, RequestError) and each.code is code:
                each.add_note(advice)
        raise


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
        case TidemarkError(__cause__=UnicodeEncodeError(object=argument)):
            text = f"{os.fsencode(argument)!r} is not UTF-8, which names and texts have to be"
        case TidemarkError():
            # Several records may have failed with one and the same.
            text = "; ".join(dict.fromkeys([str(error), *getattr(error, "__notes__", ())]))
        case OSError(strerror=str(reason)):
            text = f"{error.filename}: {reason}" if error.filename else reason
        case OSError():
            text = str(error) or type(error).__name__
        case MemoryError():
            text = "no memory was left"
        case RuntimeError(args=("can't start new thread",)):
            text = (
                "no thread can be started: let the process have more (`ulimit -u`, or the limit of "
                "its container) or more memory"
            )
        case _:
            text = f"a bug: {type(error).__name__}: {error} (-v shows where)"
    # An argument that is not UTF-8 shows as the escapes of its bytes, on whatever it is printed.
    return " ".join(text.split()).encode(errors="backslashreplace").decode()


def _silence_standard_output() -> None:
    """Keep the interpreter's last flush from failing a second time, and saying so."""
    # A test's stream is no real file; then nothing will be flushed to a pipe either.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
