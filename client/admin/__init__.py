"""The administrative calls, one class for each noun, together in `Admin`.

They retry what may pass (a moved controller or leader, a lost connection) until the client's
`retry_timeout_seconds`, and raise `RequestError` with the broker's code or `OSError` after that.
What is not idempotent is repeated too: a creation whose first answer was lost can therefore end
with TOPIC_ALREADY_EXISTS.
"""

from tidemark.client.admin.acls import AclAdmin
from tidemark.client.admin.brokers import BrokerAdmin
from tidemark.client.admin.cluster import ClusterAdmin
from tidemark.client.admin.configs import ConfigAdmin
from tidemark.client.admin.groups import GroupAdmin
from tidemark.client.admin.leaders import LeaderAdmin
from tidemark.client.admin.offsets import OffsetAdmin
from tidemark.client.admin.quotas import QuotaAdmin
from tidemark.client.admin.reassignments import ReassignmentAdmin
from tidemark.client.admin.topics import TopicAdmin
from tidemark.client.admin.transactions import TransactionAdmin
from tidemark.client.admin.users import UserAdmin


class Admin(
    TopicAdmin,
    ConfigAdmin,
    OffsetAdmin,
    GroupAdmin,
    ClusterAdmin,
    BrokerAdmin,
    LeaderAdmin,
    ReassignmentAdmin,
    QuotaAdmin,
    AclAdmin,
    UserAdmin,
    TransactionAdmin,
):
    """Everything that can be asked of a cluster; `Client.admin`."""
