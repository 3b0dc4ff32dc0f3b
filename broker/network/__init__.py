"""Client sockets: one task, connections, requests in order, and who a client is."""
