"""The brokers of a cluster on blocking sockets: connections to them, and who leads what."""

from tidemark.client.addresses import Address
from tidemark.client.blocking.connection import BlockingConnection, open_connection
from tidemark.client.blocking.kept import KeptConnections
from tidemark.client.cluster import ClusterView
from tidemark.client.settings import ClientSettings
from tidemark.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)


class Brokers:
    """Connections come from `kept`, and go back there, if there is such a thing."""

    def __init__(
        self,
        bootstrap: tuple[Address, ...],
        settings: ClientSettings,
        kept: KeptConnections | None,
    ) -> None:
        self._bootstrap = bootstrap
        self._settings = settings
        self._kept = kept

    def open(self, address: Address) -> BlockingConnection:
        """Raises `OSError`."""
        if self._kept is None:
            return open_connection(address, self._settings)
        return self._kept.open(address, self._settings)

    def release(self, connection: BlockingConnection) -> None:
        """For others to use, if nothing is on its way to it."""
        if self._kept is None:
            connection.close()
        else:
            self._kept.give_back(connection, self._settings)

    def ask_about(self, topic: str) -> ClusterView:
        """What the first broker that answers knows. Raises `OSError` if none does."""
        failures: list[str] = []
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        for address in self._bootstrap:
            try:
                connection = self.open(address)
                try:
                    return ClusterView().updated(connection.request(request, MetadataResponse))
                finally:
                    self.release(connection)
            except OSError as error:
                failures.append(str(error))
        raise ConnectionError("; ".join(failures))
