"""animed: drop photos into a folder, and anime pictures appear in another."""

__version__ = "0.1.0"
