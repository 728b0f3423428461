"""The generator, its weights and how it runs. Only worker processes import this room."""
