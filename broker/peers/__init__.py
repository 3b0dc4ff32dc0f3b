"""The other brokers: connections to them and from them, messages of groups, calls.

`open_peer_network` is the way in; `PeerEvents` is told what comes.
"""

from tidemark.broker.peers.hello import Peer, endpoints_of, metadata_of
from tidemark.broker.peers.joining import ask_to_join
from tidemark.broker.peers.listening import BoundPeerListener, bind_peers
from tidemark.broker.peers.network import PeerNetwork, open_peer_network
from tidemark.broker.peers.services import PeerEvents

__all__ = [
    "BoundPeerListener",
    "Peer",
    "PeerEvents",
    "PeerNetwork",
    "ask_to_join",
    "bind_peers",
    "endpoints_of",
    "metadata_of",
    "open_peer_network",
]
