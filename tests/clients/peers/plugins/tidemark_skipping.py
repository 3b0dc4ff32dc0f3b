"""Skips what does not apply to Tidemark, and says why. Loaded into the other project's pytest."""

import json
import os
from fnmatch import fnmatch

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = json.loads(os.environ["TIDEMARK_NOT_APPLICABLE"])
    for item in items:
        name = item.nodeid.rpartition("/")[2]
        for pattern, reason in reasons.items():
            if fnmatch(name, pattern):
                item.add_marker(pytest.mark.skip(reason=reason))
                break
