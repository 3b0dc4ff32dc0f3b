"""Who may connect, as configuration states it."""

from dataclasses import dataclass, field

from tidemark.broker.config.kinds import ConfigType, Kind, parse_items


@dataclass(frozen=True, slots=True)
class User:
    """A name and its password, which never shows in a log."""

    name: str
    password: str = field(repr=False)

    def __str__(self) -> str:
        return self.name


def users_kind() -> Kind[tuple[User, ...]]:
    """`name:password` with commas between, or a list of tables with both."""
    return Kind(ConfigType.PASSWORD, "users as name:password with commas between", _parse)


def _parse(given: object) -> tuple[User, ...]:
    if isinstance(given, list) and any(isinstance(item, dict) for item in given):
        users = [_from_table(item) for item in given]
    else:
        users = [_from_text(item) for item in parse_items(given)]
    names = [user.name for user in users]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"names {', '.join(twice)} more than once")
    return tuple(users)


def _from_table(table: object) -> User:
    if not isinstance(table, dict) or table.keys() != {"name", "password"}:
        raise ValueError("must be tables with exactly a name and a password")
    name, password = table["name"], table["password"]
    if not (isinstance(name, str) and name and isinstance(password, str) and password):
        raise ValueError("must give each user a name and a password as text")
    return User(name, password)


def _from_text(text: str) -> User:
    name, _, password = text.partition(":")
    if not name or not password:
        # The text is not repeated: it may be a password with its name forgotten.
        raise ValueError("must be name:password for each user")
    return User(name, password)
