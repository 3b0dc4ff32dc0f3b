"""Which user a client is by the name in its certificate: rules as Kafka has them."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.broker.config import load_settings
from tidemark.broker.config.kinds import as_text
from tidemark.broker.config.principal_rules import PrincipalRules, first_user
from tidemark.protocol.errors import ConfigError

ALICE = "CN=Alice,OU=Data,O=Acme,C=DE"


def user(rules: str, name: str = ALICE) -> str | None:
    return first_user(PrincipalRules().parse(rules), name)


@pytest.mark.parametrize(
    ("rules", "called"),
    [
        ("", ALICE),
        ("DEFAULT", ALICE),
        (r"RULE:^CN=([^,\\]+),OU=Data,.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$2-$1/L", "data-alice"),
        ("RULE:^CN=(.*?),.*$/$1/U", "ALICE"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L", "alice"),
        ("RULE:^CN=Bob,.*$/bob/ , RULE:^CN=Alice,.*$/alice/,DEFAULT", "alice"),
        ("RULE:^CN=Bob,.*$/bob/,DEFAULT", ALICE),
        ("RULE:^CN=Bob,.*$/bob/", None),
        ("DEFAULT,RULE:.*/never/", ALICE),
        # A part of the name is not the name.
        ("RULE:CN=Alice/alice/", None),
        ("RULE:Alice/alice/,RULE:^CN=Alice/alice/,RULE:C=DE$/alice/", None),
        ("RULE:.*/once/", "once"),
        (r"RULE:(.*)/$0\/\$1\\$1/", rf"{ALICE}/$1\{ALICE}"),
        ("RULE:(CN)=.*/$12$01/", "CN2CN"),
        ("RULE:(DC)?.*/<$1>/", "<>"),
        ("RULE:.*//", ""),
        (r"RULE:CN=(\w+),.*/$1/", "Alice"),
    ],
)
def test_who_a_client_is(rules: str, called: str | None) -> None:
    assert user(rules) == called


def test_a_comma_in_a_value_does_not_end_it() -> None:
    """As long as a rule leaves out what has a backslash."""
    crafted = r"CN=Alice\,OU\=Data,O=Else"
    assert user(r"RULE:^CN=([^,\\]+),OU=Data,.*$/$1/", crafted) is None
    assert user("RULE:^CN=(.*?),OU=Data,.*$/$1/", crafted) is None


@pytest.mark.parametrize("name", ["CN=Alice\n", "CN=Alice\r", "x\nCN=Alice"])
def test_the_end_of_a_line_is_not_that_of_a_name(name: str) -> None:
    assert user("RULE:^CN=Alice$/alice/", name) is None


def test_classes_of_letters_are_as_in_java() -> None:
    assert user(r"RULE:CN=\w+/word/,RULE:CN=\d+/digits/,DEFAULT", "CN=٣") == "CN=٣"
    assert user("RULE:(?i)cn=k/k/,DEFAULT", "CN=\N{KELVIN SIGN}") == "CN=\N{KELVIN SIGN}"


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("CN=(.*)/$1/", "'CN=(.*)/$1/' begins with neither"),
        ("default", "'default' begins with neither"),
        ("RULE:^CN=(.*)$", "has no / behind its pattern"),
        ("RULE:^CN=(.*)$/$1", "has no / behind its replacement"),
        (r"RULE:a\/b\/", "has no / behind its pattern"),
        ("RULE:a/b/X", "a comma is missing before 'X'"),
        ("RULE:a/b/l", "a comma is missing before 'l'"),
        ("RULE:a/b/LU", "a comma is missing before 'U'"),
        ("RULE:a/b/ RULE:c/d/", "a comma is missing before 'RULE:c/d/'"),
        ("DEFAULTS", "a comma is missing before 'S'"),
        ("DEFAULT,", "there is no rule behind the last comma"),
        ("RULE:(a/b/", "'(a' is no pattern: missing ), unterminated subpattern"),
        (r"RULE:\p{Alpha}/b/", "is no pattern: bad escape"),
        ("RULE:(?<cn>a)/b/", "is no pattern: unknown extension"),
        ("RULE:[[a]]/b/", "is no pattern: Possible nested set"),
        ("RULE:[a&&b]/b/", "is no pattern: Possible set intersection"),
        ("RULE:a{99999999999999999999}/b/", "is no pattern"),
        ("RULE:a/$1/", "followed by the number of a group, and the pattern has 0"),
        ("RULE:(a)/$2/", "and the pattern has 1; a dollar of its own is"),
        ("RULE:(a)/$/", "the $ in '$'"),
        ("RULE:(a)/${a}/", "the $ in '${a}'"),
    ],
)
def test_a_rule_that_is_none_is_told_with_the_setting(rules: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(options={"ssl.principal.mapping.rules": rules}, environment={})
    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"ssl.principal.mapping.rules = {rules!r} (option): it takes DEFAULT ")
    assert told in line


pieces = st.text(alphabet="a(.*),CN=/\\$1 ", max_size=8)


@given(rules=st.lists(st.sampled_from(["DEFAULT"]) | st.builds("RULE:{}/{}/{}".format, pieces,
       pieces, st.sampled_from(["", "L", "U"])), min_size=1, max_size=3).map(",".join))  # fmt: skip
def test_rules_are_refused_or_shown_as_they_are_read(rules: str) -> None:
    kind = PrincipalRules()
    try:
        parsed = kind.parse(rules)
    except ValueError:
        return
    assert kind.parse(as_text(parsed)) == parsed
    first_user(parsed, ALICE)


@given(text=st.text(alphabet="RULE:DEFAULT,/\\LU ()$1", max_size=30))
def test_any_text_is_rules_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert PrincipalRules().parse(text)


letters = st.text(alphabet="ab,=/$\\.*", max_size=6)


@given(pattern=letters, replacement=letters)
def test_what_is_quoted_is_itself(pattern: str, replacement: str) -> None:
    quoted = re.escape(pattern).replace("/", r"\/")
    said = re.sub(r"([\\$/])", r"\\\1", replacement)
    assert user(f"RULE:{quoted}/{said}/", pattern) == replacement
