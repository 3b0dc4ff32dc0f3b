"""Which versions of the protocol between brokers this build speaks.

All messages have one version between them. Who adds a field, or has an old one say something else,
raises `LAST_VERSION` once the one that it is has been in a release, and `FIRST_VERSION` with it
unless both can be spoken. Brokers without a version in common do not talk to each other.

The version says, too, what a broker can read in the cluster's metadata: a new command raises it as
well (`partitions/state_machines/cluster_versions.py`).

So that they can say so, the greetings (Hello, Join and their answers) are the same in all versions,
for ever. A Hello says which ones its sender speaks; a Join comes in one that its sender speaks, the
oldest first, and is answered in that one by whoever does not speak it, too.
"""

from typing import Final

GREETING_VERSION: Final = 1
"""What a Hello and its answer say they are."""
FIRST_VERSION: Final = 2
LAST_VERSION: Final = 3
"""Of everything else, inclusive. Builds with version 1 changed it without saying so. Version 3 has
the messages of version 2: who speaks it reads ACLs and users in the metadata."""

SPOKEN: Final = (FIRST_VERSION, LAST_VERSION)
GREETING: Final = (GREETING_VERSION, GREETING_VERSION)
JOIN: Final = (GREETING_VERSION, LAST_VERSION)
