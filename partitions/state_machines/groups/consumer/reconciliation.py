"""From what a member has to what it is to have: it gives up first, and gets what others gave up.

The one rule that keeps a partition from having two readers: what is not a member's any more stays
in `revoking`, and so is held, until the member itself says that it has let go of it. And a member
gets the epoch of its target only then, so a commit under that epoch comes from its new part.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tidemark.partitions.state_machines.groups.consumer.member import (
    JOINING_EPOCH,
    ConsumerMember,
    MemberState,
)
from tidemark.partitions.state_machines.groups.topic_view import (
    NO_PARTITIONS,
    Partitions,
    TopicIdPartition,
)


def reconcile(
    member: ConsumerMember,
    *,
    target: Partitions,
    target_epoch: int,
    owned: Partitions | None,
    is_free: Callable[[TopicIdPartition], bool],
) -> ConsumerMember:
    """The member one step further, or as it was. `owned` is what it says it has, None if that is
    what it said before; `is_free` whether no other member holds a partition."""
    if member.state is MemberState.REVOKING and _owns_any(owned, member.revoking):
        return member
    if member.state is MemberState.STABLE and member.epoch == target_epoch:
        return member
    kept = member.assigned & target
    to_revoke = member.assigned - target
    if to_revoke and _owns_any(owned, to_revoke):
        return replace(member, state=MemberState.REVOKING, assigned=kept, revoking=to_revoke)
    assigned = kept | {partition for partition in target - kept if is_free(partition)}
    return replace(
        member,
        state=MemberState.STABLE if assigned == target else MemberState.WAITING,
        previous_epoch=member.epoch if member.epoch != target_epoch else member.previous_epoch,
        epoch=target_epoch,
        assigned=assigned,
        since=_held_since(member, kept, assigned, target_epoch),
        revoking=NO_PARTITIONS,
    )


def _held_since(
    member: ConsumerMember, kept: Partitions, assigned: Partitions, epoch: int
) -> Mapping[TopicIdPartition, int]:
    """Of what is assigned from `epoch` on, of which it keeps some. A member that joins anew, as a
    static one does, keeps nothing of what it has held as another process."""
    since = dict.fromkeys(assigned, epoch)
    if member.epoch > JOINING_EPOCH:
        since |= {each: member.held_since(each) for each in kept}
    return since


def _owns_any(owned: Partitions | None, partitions: Partitions) -> bool:
    """A member that does not say what it owns may own all it ever had."""
    return owned is None or not owned.isdisjoint(partitions)
