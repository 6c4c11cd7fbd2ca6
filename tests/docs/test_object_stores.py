"""The page about object stores says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from statelib.settings.settings import Settings, load_settings

PAGE = (Path(__file__).parents[2] / "docs" / "object-stores.md").read_text(encoding="utf-8")


def test_the_table_has_all_settings_and_their_defaults() -> None:
    told = {
        name: int(default.replace(",", ""))
        for name, default in re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", PAGE, re.MULTILINE)
    }
    fields = {
        name: field.default for name, field in Settings.model_fields.items() if re.search("storage_(?!opt)", name)
    }
    assert told == fields


def test_the_settings_file_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "hindstream.toml"
    file.write_text(re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[0], encoding="utf-8")
    settings = load_settings(environ={}, file=file)
    assert settings.store_options["aws_region"] == "eu-central-1"
    assert settings.store_options["timeout"] == "10000ms"
