"""Moving leaders: wishes are taken at the door, carried out where the leader is, and struck."""
