"""What the coordinators of groups and of transactions have in common: topics of the broker's own,
whose leaders read them back, serve what is in them, and append to them in order."""
