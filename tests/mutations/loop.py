"""The broker's loop: turns that end, and threads that are heard, whether it works or sleeps."""

from tests.mutations import Mutation

_OF_REACTOR = "tests/broker/network/test_reactor.py::"
_OF_TURN = "tests/broker/network/test_turn.py::"

MUTATIONS = (
    Mutation(
        name="a turn without an end is interrupted",
        file="broker/network/turn.py",
        old="            for _ in range(_ROUNDS_MAX):\n",
        new="            while True:\n",
        killed_by=f"{_OF_TURN}test_what_puts_itself_off_for_ever_goes_on_in_the_next_turn",
    ),
    Mutation(
        name="and goes on in the next though nobody is ready",
        file="broker/network/reactor.py",
        old="            if self._turn.is_behind:\n",
        new="            if False:\n",
        killed_by=f"{_OF_REACTOR}test_what_a_turn_has_left_is_done_though_nobody_is_ready",
    ),
    Mutation(
        name="a loop that sleeps is woken by what the disk's thread tells",
        file="broker/network/bell.py",
        old="        if self.is_asleep:\n",
        new="        if False:\n",
        killed_by=f"{_OF_REACTOR}test_a_loop_that_sleeps_is_woken_by_what_a_thread_tells",
    ),
    Mutation(
        name="a loop is to be woken from before it looks for the last time",
        file="broker/network/reactor.py",
        old="""        self._bell.is_asleep = True
        try:
            if self._turn.is_behind:
                await trio.lowlevel.checkpoint()
            else:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
""",
        new="""        try:
            if self._turn.is_behind:
                await trio.lowlevel.checkpoint()
            else:
                waiting = trio.lowlevel.wait_readable(self._epoll.fileno())
                trio.lowlevel.current_trio_token().run_sync_soon(
                    lambda: setattr(self._bell, "is_asleep", True)
                )
                await waiting
""",
        killed_by=f"{_OF_REACTOR}test_what_is_told_just_before_the_loop_sleeps_wakes_it",
    ),
    Mutation(
        name="a loop that is awake looks at what was told before it sleeps",
        file="broker/network/turn.py",
        old="        return bool(self._after or self._last or self._told)\n",
        new="        return bool(self._after or self._last)\n",
        killed_by=f"{_OF_REACTOR}"
        "test_what_is_told_while_others_are_served_is_heard_though_no_more_comes",
    ),
    Mutation(
        name="what was told to a loop that has ended is heard",
        file="broker/network/turn.py",
        old="            self._wake = None\n            self.hear()\n",
        new="            self._wake = None\n",
        killed_by=f"{_OF_TURN}"
        "test_who_has_turns_begin_is_woken_by_what_is_told_and_by_nothing_afterwards",
    ),
    Mutation(
        name="who wakes the loop is no client",
        file="broker/network/reactor.py",
        old="                    if on_ready is None:\n                        continue\n"
        "                    if descriptor != self._latest:\n",
        new="                    on_ready = on_ready or (lambda mask: None)\n"
        "                    if descriptor != self._latest:\n",
        killed_by=f"{_OF_REACTOR}"
        "test_who_is_served_is_the_only_one_though_threads_have_told_something",
    ),
)
