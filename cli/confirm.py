"""Asking before something that cannot be taken back."""

import sys

import click

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would change, and change nothing."
)
check_only_option = click.option(
    "--dry-run", is_flag=True, help="Only check whether it could be done."
)


def confirm(question: str, *, yes: bool, dry_run: bool) -> bool:
    """Whether to go ahead with what has just been shown.

    Asks on a terminal. A script has nobody to ask: there it is an error not to have said which.
    """
    if dry_run or yes:
        return not dry_run
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("nothing changed: say --yes to do it, or --dry-run to look only")
    return click.confirm(question, err=True)
