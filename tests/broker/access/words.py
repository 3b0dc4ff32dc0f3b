"""What is asked of what, in short."""

from tidemark.protocol.acls import Operation, ResourceType

DESCRIBE, TOPIC, GROUP = Operation.DESCRIBE, ResourceType.TOPIC, ResourceType.GROUP
