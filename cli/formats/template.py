"""`--template`: a jinja2 template a record, small enough to run one that somebody else wrote.

The language is jinja2's, cut down to variables, attributes, items, filters, `if` and `for`. What
is left cannot call anything, so there is nothing to escape through; and what it may cost is
bounded: each loop's rounds count against one budget for the record, each filter's result and the
whole output have a size limit. Everything else (calls, arithmetic, `set`, macros, `include`) is
refused when the template is read, by the name of the construct.

The variables are `topic`, `partition`, `offset`, `timestamp` (ms), `key`, `value`, `headers` (each
with `key` and `value`) and `leader_epoch`. Keys and values are text; bytes that are not UTF-8 come
out as they were. Null prints as nothing; lists, objects and truth values as JSON. A name that is
not there is an error, except under the filter `default`.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from jinja2 import StrictUndefined, TemplateError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tidemark.cli.formats.formatter import FormatError, Formatter, Record, Source
from tidemark.cli.formats.template_filters import FILTERS, TooMuch, printed

ROUNDS_MAX: Final = 100_000
OUTPUT_CHARACTERS_MAX: Final = 16 * 1024 * 1024

_ALLOWED: Final = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Const,
    nodes.Tuple,  # `for name, value in …`
    nodes.Filter,
    nodes.If,
    nodes.CondExpr,
    nodes.For,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Test,
    nodes.Neg,
)
_TESTS: Final = {"defined", "undefined", "none", "string", "number", "mapping", "sequence"}
_COUNTED: Final = "counted"


class Rounds:
    """How many more rounds the loops of one record may run."""

    def __init__(self) -> None:
        self.left = ROUNDS_MAX

    def count(self, items: Iterable[object]) -> Iterator[object]:
        for item in items:
            self.left -= 1
            if self.left < 0:
                raise TooMuch(f"more than {ROUNDS_MAX} rounds of its loops")
            yield item


def compile_template(text: str) -> Formatter:
    """The function that renders a record; `FormatError` if the template says more than it may.

    A record for which it fails, or costs too much, raises `FormatError` too, and says which.
    """
    rounds = Rounds()
    environment = ImmutableSandboxedEnvironment(
        autoescape=False, keep_trailing_newline=True, undefined=StrictUndefined, finalize=printed
    )
    environment.globals.clear()
    environment.filters = {**FILTERS, _COUNTED: rounds.count}
    environment.tests = {name: environment.tests[name] for name in _TESTS}
    try:
        tree = environment.parse(text)
        _check(tree)
        _count_rounds(tree)
        template = environment.from_string(tree)
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        where = f"line {line}: " if line else ""
        raise FormatError(f"the template: {where}{error}") from None
    except RecursionError:
        raise FormatError("the template: it is nested too deeply") from None

    def render(record: Record, source: Source) -> bytes:
        rounds.left = ROUNDS_MAX
        try:
            return _bounded(template.generate(_variables(record, source)))
        # Whatever a template's expressions can raise, it is the template's failure, not ours.
        except (TemplateError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError,
                AttributeError) as error:  # fmt: skip
            where = f"{source.topic}-{source.partition} offset {record.offset}"
            raise FormatError(f"the template fails at {where}: {error}") from None

    return render


def _check(tree: nodes.Node) -> None:
    for node in (tree, *tree.find_all(nodes.Node)):
        kind = type(node)
        if kind not in _ALLOWED:
            raise FormatError(f"the template: {kind.__name__} is not allowed (line {node.lineno})")
        if isinstance(node, nodes.For) and node.recursive:
            raise FormatError(f"the template: a recursive loop is not allowed (line {node.lineno})")


def _count_rounds(tree: nodes.Template) -> None:
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, _COUNTED, [], [], None, None, lineno=loop.lineno)


def _bounded(pieces: Iterable[str]) -> bytes:
    rendered, characters = [], 0
    for piece in pieces:
        characters += len(piece)
        if characters > OUTPUT_CHARACTERS_MAX:
            raise TooMuch(f"more than {OUTPUT_CHARACTERS_MAX} characters of output")
        rendered.append(piece)
    return "".join(rendered).encode("utf-8", "surrogateescape")


def _variables(record: Record, source: Source) -> dict[str, object]:
    return {
        "topic": source.topic,
        "partition": source.partition,
        "leader_epoch": source.leader_epoch,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [{"key": name, "value": _text(value)} for name, value in record.headers],
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")
