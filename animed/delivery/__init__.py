"""Giving pictures their names and places, and originals theirs."""
