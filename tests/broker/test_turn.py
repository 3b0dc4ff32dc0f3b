from tidemark.broker.network.turn import Turn


def test_what_is_put_off_runs_once_the_turn_is_over_in_order() -> None:
    turn, seen = Turn(), list[str]()

    def work() -> None:
        turn.after(lambda: seen.append("after 1"))
        turn.after(lambda: seen.append("after 2"))
        seen.append("work")

    turn.run(work)
    assert seen == ["work", "after 1", "after 2"]


def test_outside_a_turn_nothing_is_put_off() -> None:
    seen = list[str]()
    Turn().after(lambda: seen.append("now"))
    assert seen == ["now"]


def test_a_turn_within_a_turn_is_the_same_turn() -> None:
    turn, seen = Turn(), list[str]()

    def inner() -> None:
        turn.after(lambda: seen.append("after"))

    def outer() -> None:
        turn.run(inner)
        seen.append("outer goes on")

    turn.run(outer)
    assert seen == ["outer goes on", "after"]


def test_what_is_put_off_while_finishing_is_still_done_in_this_turn() -> None:
    turn, seen = Turn(), list[str]()
    turn.run(lambda: turn.after(lambda: turn.after(lambda: seen.append("second round"))))
    assert seen == ["second round"]
    assert not turn.is_open
