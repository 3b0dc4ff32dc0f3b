"""A noun's commands: `tidemark topic …`. Their help is told whole, and a name that is none is
answered with those that are."""

from difflib import get_close_matches

import click


class Verbs(click.Group):
    """The group of one noun."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, names = args[0], self.list_commands(ctx)
        if name not in names and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name, names, n=1)
            if _is_noun(ctx, name):  # `topic consume`, as with rpk
                hint = f"There is 'tidemark {name}'."
            else:
                hint = f"Did you mean '{near[0]}'?" if near else f"There is {', '.join(names)}."
            ctx.fail(f"No such command '{name}'. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                # As long as the first paragraph: click would cut it.
                rows.append((name, command.get_short_help_str(limit=1000)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _is_noun(ctx: click.Context, name: str) -> bool:
    whole = ctx.find_root().command
    return isinstance(whole, click.Group) and name in whole.list_commands(ctx)
