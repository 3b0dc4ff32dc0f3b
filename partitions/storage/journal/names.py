"""What the journal's files are called. Their order is in their blocks, not in their names."""

import re
from typing import Final

from tidemark.partitions.storage.files import Files

_NAME: Final = re.compile(r"\d{4}\.journal")
DAMAGED_SUFFIX: Final = ".damaged"
"""A file in which something was wrong is kept under this name, for people to look at."""


def journal_name(number: int) -> str:
    return f"{number:04d}.journal"


def was_damaged(files: Files, path: str) -> bool:
    """Whether a journal was put aside here."""
    return files.exists(path) and any(name.endswith(DAMAGED_SUFFIX) for name in files.sizes(path))


def journal_files(files: Files, path: str) -> list[str]:
    """The names of the files in a journal's directory, which need not be there."""
    if not files.exists(path):
        return []
    return sorted(name for name in files.sizes(path) if _NAME.fullmatch(name))
