"""What a partition decides, without sockets, clock or trio: storage and state machines."""
