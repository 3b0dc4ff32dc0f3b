"""The check of commits fires when it should, and only then."""

from tests.chaos.commits import Commit, Commits, Committed


def test_commits_that_only_grow_are_right() -> None:
    commits = Commits(
        made=[Commit("a", 0, 5, 1.0, 2.0), Commit("b", 0, 9, 3.0, 4.0)],
        seen=[Committed(0, 5, 2.5, 2.6), Committed(0, 9, 5.0, 5.1), Committed(1, 0, 5.0, 5.1)],
    )
    assert list(commits.regressions()) == []


def test_an_answer_below_an_acknowledged_commit_is_a_regression() -> None:
    commits = Commits(made=[Commit("a", 0, 5, 1.0, 2.0)], seen=[Committed(0, 4, 2.5, 2.6)])
    assert len(list(commits.regressions())) == 1


def test_a_lower_commit_than_one_before_is_a_regression() -> None:
    commits = Commits(made=[Commit("a", 0, 5, 1.0, 2.0), Commit("b", 0, 3, 2.1, 2.2)])
    assert len(list(commits.regressions())) == 1


def test_what_overlaps_may_come_in_any_order() -> None:
    commits = Commits(made=[Commit("a", 0, 5, 1.0, 2.0)], seen=[Committed(0, 4, 1.9, 2.1)])
    assert list(commits.regressions()) == []


def test_partitions_do_not_mix() -> None:
    commits = Commits(made=[Commit("a", 0, 5, 1.0, 2.0)], seen=[Committed(1, 0, 3.0, 3.1)])
    assert list(commits.regressions()) == []


def test_a_commit_without_an_answer_may_be_seen_late() -> None:
    unanswered = [Commit("a", 0, 4, 0.5, 0.9)]
    made = [Commit("a", 0, 5, 1.0, 2.0)]
    for offset, count in ((4, 0), (3, 1)):
        seen = [Committed(0, offset, 2.5, 2.6)]
        commits = Commits(made=made, seen=seen, unanswered=unanswered)
        assert len(list(commits.regressions())) == count


def test_one_that_took_long_may_have_been_sent_twice_and_be_seen_late_too() -> None:
    for ended, count in ((3.0, 0), (0.9, 1)):
        made = [Commit("a", 0, 4, 0.5, ended), Commit("a", 0, 5, 3.1, 3.2)]
        commits = Commits(made=made, seen=[Committed(0, 4, 3.5, 3.6)])
        assert len(list(commits.regressions())) == count
