"""The README's client matrix says what the tests here show, no more and no less."""

from tests.clients.matrix import README, missing, unnamed, written


def test_the_readme_shows_the_matrix_of_these_tests() -> None:
    text = README.read_text()
    assert text == written(text), "run: python -m tests.clients.matrix"


def test_every_client_test_has_a_row() -> None:
    assert unnamed() == set()


def test_every_mark_of_a_shared_module_is_a_test_there() -> None:
    assert missing() == set()
