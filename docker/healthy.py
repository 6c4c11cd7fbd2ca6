"""For health checks: ``healthy.py URL [PART...]`` succeeds if the address answers, and says that these are healthy.

Airflow's API server says of the other components how they are.
"""

from __future__ import annotations

import json
import sys
import urllib.request


def main(url: str, *parts: str) -> str | None:
    """What is wrong; None: nothing."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            said = json.load(answer) if parts else {}
    except OSError as error:
        return str(error)
    wrong = [part for part in parts if said[part]["status"] != "healthy"]
    return f"not healthy: {', '.join(wrong)}" if wrong else None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
