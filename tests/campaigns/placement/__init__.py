"""Placement with state of some size, on a cluster whose hosts are lost and added, against one process."""

from __future__ import annotations
