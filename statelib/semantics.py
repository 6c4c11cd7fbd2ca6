"""Whose word counts where the KIPs and the shipped library differ."""

from __future__ import annotations

from typing import Literal

Semantics = Literal["kip", "kafka-4.3"]
"""``kip`` keeps what the KIPs promise, ``kafka-4.3`` does what the shipped library does (docs/semantics.md)."""
