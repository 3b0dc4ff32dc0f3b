"""The cluster's metadata as bytes: commands, snapshots, and what is neither."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.state_machines.any_command import COMMANDS
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    decode_command,
    encode_command,
)
from tidemark.partitions.state_machines.placement import Load
from tidemark.protocol.errors import RequestError, StorageError


@given(command=COMMANDS)
def test_a_command_comes_back_from_its_bytes(command: Command) -> None:
    assert decode_command(encode_command(command)) == command


@given(commands=st.lists(COMMANDS, max_size=40))
def test_the_state_is_what_its_commands_bytes_and_its_snapshots_give(
    commands: list[Command],
) -> None:
    state, log = ClusterState(), []
    for command in commands:
        log.append(encode_command(command))
        try:
            state.check(command)
        except RequestError:
            with pytest.raises(RequestError):
                state.apply(command)
        else:
            state.apply(command)
        assert ClusterState.decode(state.encode()).encode() == state.encode()
    held = Load.of(each for topic in state.topics.values() for each in topic.assignments)
    assert state.load == held == ClusterState.decode(state.encode()).load
    assert ClusterState.replay(map(decode_command, log)).encode() == state.encode()


@given(data=st.binary(max_size=50) | st.text(max_size=50).map(str.encode))
def test_bytes_that_are_no_command_or_snapshot_are_refused(data: bytes) -> None:
    with pytest.raises(StorageError):
        decode_command(data)
    with pytest.raises(StorageError):
        ClusterState.decode(data)
