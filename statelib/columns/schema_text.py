"""An Arrow schema as text: an IPC message in base64, exact for every type."""

from __future__ import annotations

import base64

import pyarrow as pa


def encode_schema(schema: pa.Schema) -> str:
    """The text of ``schema``, without its metadata."""
    return base64.b64encode(schema.remove_metadata().serialize().to_pybytes()).decode()


def decode_schema(text: str) -> pa.Schema:
    """The inverse of `encode_schema`."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
