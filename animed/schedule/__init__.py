"""What to draw next and what was drawn: the backlog, the ledger, the back-off."""
