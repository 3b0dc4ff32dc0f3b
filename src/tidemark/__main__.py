"""`python -m tidemark`: the command, for whoever has an interpreter rather than its `bin` on the
path."""

from tidemark.cli.entry import main

main()
