"""`tidemark acl`: list, allow, deny, remove."""

import click

from tidemark.cli.acl.change import allow, deny, remove
from tidemark.cli.acl.look import list_
from tidemark.cli.verbs import Verbs


@click.group(cls=Verbs)
def acl() -> None:
    """See and change who is allowed to do what.

    An ACL allows or denies a principal an operation on a resource, or on all whose names begin so.
    One that denies outweighs all that allow. What none allows is denied, but to the super.users of
    the brokers; allow.everyone.if.no.acl.found says whether that also goes for a resource that no
    ACL is about. There are ACLs if the brokers have an authorizer.class.name.
    """


for verb in (list_, allow, deny, remove):
    acl.add_command(verb)
