"""What a node does: listener, request handlers, replicas, coordinators, metrics. Server-side trio lives here."""
