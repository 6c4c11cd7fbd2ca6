from __future__ import annotations

from tests.storage.s3 import s3 as s3  # noqa: PLC0414
from tests.storage.s3 import s3_options as s3_options  # noqa: PLC0414
