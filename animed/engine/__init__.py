"""Worker processes: the parent's side, the child's side, and one photo's way through a child."""
