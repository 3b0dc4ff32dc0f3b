"""`python -m tidemark.testing.shell FIRST [LAST]`: run these seeds, and say what broke.

A seed does the same each time, byte for byte: the digest of its trace says whether it has.
"""

import sys

from tidemark.testing.shell.run import Verdict, run


def main(words: list[str]) -> int:
    """The exit status: 3 if a run has not kept every promise, as `tidemark sim`."""
    if not 1 <= len(words) <= 2 or not all(word.isdecimal() for word in words):
        print("which seeds? python -m tidemark.testing.shell FIRST [LAST]", file=sys.stderr)
        return 2
    first, last = int(words[0]), int(words[-1])
    broke = 0
    for seed in range(first, last + 1):
        verdict = run(seed)
        broke += bool(verdict.found)
        print(_told(verdict), flush=True)
    return 3 if broke else 0


def _told(verdict: Verdict) -> str:
    faults = ", ".join(f"{kind} {count}" for kind, count in sorted(verdict.faults.items()))
    ends = ", ".join(f"{end} {count}" for end, count in sorted(verdict.transactions.items()))
    what = (
        f"seed {verdict.seed}: {verdict.sent} sent, {verdict.read} read, "
        f"{verdict.commits} commits, {verdict.remade} times remade, transactions: {ends}, "
        f"in {verdict.seconds:.0f} s "
        f"of virtual time; {faults}; trace {verdict.digest}"
    )
    if not verdict.found:
        return what
    last = "\n".join(f"  {line}" for line in verdict.lines[-40:])
    return f"{last}\n{what}\n" + "\n".join(f"BROKE: {each}" for each in verdict.found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
