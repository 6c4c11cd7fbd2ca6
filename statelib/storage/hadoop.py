"""Addresses in the spelling of Hadoop's file systems."""

from __future__ import annotations


def hadoop_uri(uri: str) -> str:
    """Hadoop's client calls S3 ``s3a``."""
    return f"s3a://{uri.removeprefix('s3://')}" if uri.startswith("s3://") else uri
