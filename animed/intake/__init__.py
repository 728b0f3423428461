"""Finding photos: watching, scanning, the rules, and when a path has stopped changing."""
