"""Who may do what: ACLs, which of them are there, and what follows from them."""
