"""Makes the stack's secrets, once: random ones, in a volume that its services share and nobody else has."""

from __future__ import annotations

import base64
import json
import secrets
import sys
from pathlib import Path

ADMIN = "admin"
DATABASE = "airflow"


def main(folder: Path) -> None:
    """Writes the files that are not there yet."""
    access_key, secret_key, password = (_make(folder, name) for name in ("s3-access-key", "s3-secret-key", "postgres"))
    _make(folder, "airflow-jwt")
    _make(folder, "airflow-api")
    _make(folder, "airflow-fernet", base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
    admin = _make(folder, "airflow-admin")
    _make(folder, "airflow-passwords.json", json.dumps({ADMIN: admin}))
    _make(folder, "airflow-database", f"postgresql+psycopg2://{DATABASE}:{password}@postgres/{DATABASE}")
    identity = {
        "name": "stack",
        "credentials": [{"accessKey": access_key, "secretKey": secret_key}],
        "actions": ["Admin"],
    }
    _make(folder, "s3.json", json.dumps({"identities": [identity]}))


def _make(folder: Path, name: str, text: str | None = None) -> str:
    """The content of a file; whole, or not there."""
    file = folder / name
    if not file.exists():
        part = file.with_suffix(".part")
        part.write_text(text or secrets.token_hex(24))
        part.chmod(0o600)
        part.rename(file)
    return file.read_text()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
