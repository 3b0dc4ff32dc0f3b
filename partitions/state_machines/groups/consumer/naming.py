"""What a member is called in a sentence."""

from tidemark.partitions.state_machines.groups.consumer.member import ConsumerMember


def name_of(member: ConsumerMember) -> str:
    name = f"member {member.id}"
    if member.instance_id is not None:
        name += f" (instance {member.instance_id})"
    return f"{name} of client {member.client_id or '-'} at {member.client_host.lstrip('/')}"
