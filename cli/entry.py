"""The console script: what is done before the command is there.

Importing it takes a tenth of a second and more. Nothing has begun by then, so Ctrl-C ends the
process as the system does it, where Python would show which import it was in.
"""

import signal


def main() -> None:
    """Run, and leave with the command's exit status."""
    # Who has it ignored, as `nohup` has, keeps that.
    is_pythons = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_pythons:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tidemark.cli import main as command

    if is_pythons:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command.main()


if __name__ == "__main__":
    main()
