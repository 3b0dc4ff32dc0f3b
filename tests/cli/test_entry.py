"""What happens before the command has been imported."""

import os
import signal
import subprocess
import sys

ENTRY = "from tidemark.cli.entry import main\n"


def run_python(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )


def interrupted_while_importing(module: str, *, before: str = "") -> str:
    """A program that gets Ctrl-C where the command imports `module`."""
    return (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        f"{before}"
        "sys.argv = ['tidemark', '--version']\n"
        f"{ENTRY}main()\n"
    )


def test_an_interrupt_while_the_command_is_imported_ends_it_without_a_word() -> None:
    done = run_python(interrupted_while_importing("click"))
    assert done.returncode == -signal.SIGINT
    assert done.stdout == done.stderr == ""


def test_who_ignores_interrupts_keeps_ignoring_them() -> None:
    ignoring = "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    done = run_python(interrupted_while_importing("click", before=ignoring))
    assert (done.returncode, done.stdout) == (0, "tidemark 0.1.0\n")


def test_the_command_itself_runs_as_python_runs_everything() -> None:
    done = run_python(
        "import signal\n"
        "from tidemark.cli import main as command\n"
        "def said():\n"
        "    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
        "command.main = said\n"
        f"{ENTRY}main()\n"
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_the_package_runs_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tidemark", "topic", "list", "-o", "xml"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Try 'tidemark topic list --help'" in done.stderr


def test_what_a_terminal_cannot_show_is_escaped() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tidemark", "topic", "create", "--help"],
        capture_output=True,
        check=False,
        timeout=60,
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(rb"Usage: tidemark topic create [OPTIONS] TOPIC\u2026")
