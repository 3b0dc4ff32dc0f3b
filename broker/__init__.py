"""What a node does: listener, handlers, replicas, coordinators, metrics; server-side trio."""
