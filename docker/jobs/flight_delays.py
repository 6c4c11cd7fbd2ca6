"""The demo's job, with the stack's schema registry, and the topics that it reads."""

from __future__ import annotations

import os

from hindstream.demo.in_kafka import published_job, topics
from hindstream.kafka import SchemaRegistry

__all__ = ["job", "topics"]

job = published_job(SchemaRegistry(os.environ["SCHEMA_REGISTRY"]))
