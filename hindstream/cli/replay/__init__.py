"""Slices are replayed: one, many, or phase by phase. Begin with `commands`."""
