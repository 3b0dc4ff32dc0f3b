"""Any changes of users."""

from hypothesis import strategies as st

from tidemark.partitions.state_machines.access.users import Credential, Mechanism, UserChange

SHA_256, SHA_512 = Mechanism
NAMES = ("ada", "bob", "\N{SNOWMAN}")


def credential(salt: bytes = b"salt", iterations: int = 4096) -> Credential:
    return Credential(
        iterations=iterations, salt=salt, stored_key=b"\0\xff" * 16, server_key=b"\2" * 32
    )


def change(
    name: str, mechanism: Mechanism = SHA_256, given: Credential | None = None
) -> UserChange:
    return UserChange(name=name, mechanism=mechanism, credential=given)


_credentials = st.builds(
    credential, salt=st.binary(min_size=1, max_size=20), iterations=st.integers(4096, 16384)
)
CHANGES = st.builds(
    change, st.sampled_from(NAMES), st.sampled_from(Mechanism), st.none() | _credentials
)
