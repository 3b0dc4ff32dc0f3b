"""Users of the cluster log in: with SCRAM, and with nothing else; the settings come first."""

import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest

from tidemark.broker.config import User
from tidemark.broker.network.sasl import Credentials
from tidemark.partitions.state_machines.access.users import (
    BY_LABEL,
    Credential,
    UserChange,
    UserTable,
)
from tidemark.protocol.errors import ErrorCode, RequestError

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
every_mechanism = pytest.mark.parametrize("mechanism", HASHES)
ANN = User("ann", "secret")


def change(
    name: str,
    password: str,
    mechanism: str = "SCRAM-SHA-256",
    *,
    salt: bytes = b"s",
    iterations: int = 4096,
) -> UserChange:
    hashed = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(hashed, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", hashed)
    return UserChange(
        name=name,
        mechanism=BY_LABEL[mechanism],
        credential=Credential(
            iterations=iterations,
            salt=salt,
            stored_key=hashlib.new(hashed, client_key).digest(),
            server_key=hmac.digest(salted, b"Server Key", hashed),
        ),
    )


def table(*changes: UserChange) -> UserTable:
    users = UserTable()
    users.alter(changes, b"\1" * 32)()
    return users


def challenge(known: Credentials, mechanism: str, name: str) -> tuple[bytes, int]:
    """The salt and the iterations that a name is shown."""
    reply = known.begin(mechanism).step(f"n,,n={name},r=nonce".encode()).reply.decode()
    fields = dict(each.split("=", 1) for each in reply.split(","))
    return b64decode(fields["s"]), int(fields["i"])


def log_in(known: Credentials, mechanism: str, name: str, password: str) -> str | None:
    """Who the broker takes the client for, which checks the broker as well.

    By hand: scramp's client takes no short salt.
    """
    hashed, server = HASHES[mechanism], known.begin(mechanism)
    bare = f"n={name},r=nonce"
    first = server.step(f"n,,{bare}".encode()).reply.decode()
    fields = dict(each.split("=", 1) for each in first.split(","))
    salted = hashlib.pbkdf2_hmac(
        hashed, password.encode(), b64decode(fields["s"]), int(fields["i"])
    )
    key = hmac.digest(salted, b"Client Key", hashed)
    final = f"c=biws,r={fields['r']}"
    message = f"{bare},{first},{final}".encode()
    signature = hmac.digest(hashlib.new(hashed, key).digest(), message, hashed)
    proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
    done = server.step(f"{final},p={b64encode(proof).decode()}".encode())
    server_key = hmac.digest(salted, b"Server Key", hashed)
    expected = b64encode(hmac.digest(server_key, message, hashed)).decode()
    assert done.reply.decode() == f"v={expected}"
    return done.user


def refuses(known: Credentials, mechanism: str, name: str, password: str) -> bool:
    try:
        if mechanism == "PLAIN":
            known.begin(mechanism).step(f"\0{name}\0{password}".encode())
        else:
            log_in(known, mechanism, name, password)
    except RequestError as error:
        return error.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    return False


@every_mechanism
@pytest.mark.parametrize("salt", [b"s", bytes(16), bytes(64)])
@pytest.mark.parametrize("iterations", [4096, 16_384])
def test_a_user_of_the_cluster_is_let_in_by_the_password_and_no_other(
    mechanism: str, salt: bytes, iterations: int
) -> None:
    known = Credentials(
        [ANN], table(change("bob", "pw", mechanism, salt=salt, iterations=iterations))
    )
    assert log_in(known, mechanism, "bob", "pw") == "bob"
    assert log_in(known, mechanism, "ann", "secret") == "ann"
    assert refuses(known, mechanism, "bob", "secret")
    assert refuses(known, mechanism, "ann", "pw")


def test_a_password_is_of_its_mechanism() -> None:
    of_bob = (change("bob", "one"), change("bob", "two", "SCRAM-SHA-512"))
    known = Credentials([], table(*of_bob))
    assert log_in(known, "SCRAM-SHA-256", "bob", "one") == "bob"
    assert log_in(known, "SCRAM-SHA-512", "bob", "two") == "bob"
    assert refuses(known, "SCRAM-SHA-512", "bob", "one")
    of_one = Credentials([], table(of_bob[1]))
    assert refuses(of_one, "SCRAM-SHA-256", "bob", "two")


def test_users_of_the_cluster_are_not_let_in_by_plain() -> None:
    known = Credentials([ANN], table(change("bob", "pw")))
    assert refuses(known, "PLAIN", "bob", "pw")
    assert refuses(known, "PLAIN", "bob", "")
    assert known.begin("PLAIN").step(b"\0ann\0secret").user == "ann"


@every_mechanism
def test_of_a_name_that_both_have_the_settings_count(mechanism: str) -> None:
    known = Credentials([ANN], table(change("ann", "pw", mechanism)))
    assert log_in(known, mechanism, "ann", "secret") == "ann"
    assert refuses(known, mechanism, "ann", "pw")


@pytest.mark.parametrize("mechanism", ["PLAIN", *HASHES])
@pytest.mark.parametrize("users", [[], [ANN]])
def test_nobody_is_let_in_by_a_name_that_is_nobodys(mechanism: str, users: list[User]) -> None:
    """Not even who knows what the password is made of that stands in for one: all passwords, or
    what is in the metadata."""
    for of_cluster in (UserTable(), table(change("bob", "pw"))):
        known = Credentials(users, of_cluster)
        assert refuses(known, mechanism, "eve", known.password("eve"))
        assert refuses(known, mechanism, "bob", known.password("bob"))


@every_mechanism
def test_a_name_that_nobody_has_is_challenged_like_one_that_somebody_has(mechanism: str) -> None:
    bob = change("bob", "pw", mechanism, salt=b"of eighteen bytes.", iterations=8192)
    known = Credentials([], table(bob))
    assert challenge(known, mechanism, "bob") == (b"of eighteen bytes.", 8192)
    salts = set()
    for name in ("eve", "mallory"):
        salt, iterations = challenge(known, mechanism, name)
        assert (len(salt), iterations) == (18, 8192)
        salts.add(salt)
    assert len(salts) == 2
    mixed = Credentials([ANN], table(bob))
    shown = {challenge(mixed, mechanism, f"eve{number}")[1] for number in range(20)}
    assert shown == {4096, 8192}


def test_the_challenge_of_a_name_that_nobody_has_stays_when_others_come_and_go() -> None:
    users = table(change("bob", "pw", salt=bytes(24)))
    before = challenge(Credentials([ANN], users), "SCRAM-SHA-256", "eve")
    users.alter([change("carl", "pw", salt=bytes(24))], b"\2" * 32)()
    gone = UserChange(name="bob", mechanism=BY_LABEL["SCRAM-SHA-256"], credential=None)
    users.alter([gone], b"")()
    others = [ANN, User("dora", "another")]
    assert challenge(Credentials(others, users), "SCRAM-SHA-256", "eve") == before
