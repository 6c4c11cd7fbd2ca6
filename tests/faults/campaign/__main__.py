"""``python -m tests.faults.campaign``."""

from __future__ import annotations

import sys

from tests.faults.campaign.runner import main

sys.exit(main(sys.argv[1:]))
