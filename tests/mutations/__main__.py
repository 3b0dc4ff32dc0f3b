"""`python -m tests.mutations [WORD ...]`: break each rule whose name and file have the words.

Says for each whether its test has noticed, and fails if one has not.
"""

import sys

from tests.mutations import all_mutations
from tests.mutations.runner import failures_of_whole_tree, run


def main(words: list[str]) -> int:
    mutations = [
        mutation
        for mutation in all_mutations()
        if all(word in f"{mutation.file} {mutation.name}" for word in words)
    ]
    if not mutations:
        print(f"no rule has all of: {' '.join(words)}", file=sys.stderr)
        return 2
    if failures := failures_of_whole_tree(mutations):
        print(failures, file=sys.stderr)
        print("the tests fail though nothing is broken", file=sys.stderr)
        return 2
    survivors = 0
    for outcome in run(mutations):
        verdict = "killed  " if outcome.killed else "SURVIVED"
        print(f"{verdict} {outcome.seconds:5.1f} s  {outcome.mutation.name}", flush=True)
        if not outcome.killed:
            survivors += 1
            print(outcome.output, file=sys.stderr)
    print(f"{len(mutations) - survivors} of {len(mutations)} killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
