"""Where logs of tests lie."""

from tidemark.testing.memory_files import MemoryFiles


def files_with(directory: str) -> MemoryFiles:
    """Files in memory, with an empty directory that no crash takes away."""
    files = MemoryFiles()
    files.make_directory(directory)
    files.sync_directory("/")
    return files
