"""Who may connect, as configuration states it."""

from dataclasses import field

from tidemark.partitions.state_machines.config_table import ConfigType, split_list
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class User:
    """A name and its password, which never shows in a log."""

    name: str
    password: str = field(repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Users:
    """`name:password` with commas between, or in TOML a list of tables with both."""

    type: ConfigType = ConfigType.STRING

    def parse(self, text: str) -> tuple[User, ...]:
        # What was written is not repeated: it may be a password whose name was forgotten.
        parts = [item.partition(":") for item in split_list(text)]
        if not all(name and password for name, _, password in parts):
            raise ValueError("name:password for each user, with commas between")
        return _each_once([User(name, password) for name, _, password in parts])

    def parse_tables(self, tables: list[object]) -> tuple[User, ...]:
        return _each_once([_from_table(table) for table in tables])


def _from_table(table: object) -> User:
    match table:
        case {"name": str(name), "password": str(password), **others} if name and password:
            if others:
                raise ValueError(f"tables with a name and a password, and no {next(iter(others))}")
            return User(name, password)
    raise ValueError("tables that each have a name and a password, both text")


def _each_once(users: list[User]) -> tuple[User, ...]:
    names = [user.name for user in users]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"each name once, and {', '.join(twice)} is there more often")
    return tuple(users)
