"""Running the small tools of the machine, out of reach of a terminal's Ctrl-C."""

import subprocess


class ToolFailed(Exception):
    """A tool ended with an error; the message has what it said."""


def run(*command: str) -> str:
    """What the command wrote to standard output. Raises `ToolFailed`."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, process_group=0)
    if done.returncode:
        raise ToolFailed(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def tried(*command: str) -> bool:
    """Whether the command went well."""
    return (
        subprocess.run(command, capture_output=True, check=False, process_group=0).returncode == 0
    )
