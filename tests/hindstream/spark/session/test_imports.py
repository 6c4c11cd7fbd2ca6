"""Imports that are kept out of the garbage collector's sight."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from hindstream.spark.session.imports import importing

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()
    gc.unfreeze()


@pytest.mark.usefixtures("enabled")
def test_what_is_imported_is_not_looked_at() -> None:
    with importing():
        assert not gc.isenabled()
        made = [[n] for n in range(1000)]
    assert gc.isenabled()
    looked_at = {id(there) for there in gc.get_objects()}
    assert not looked_at & {id(one) for one in made}


@pytest.mark.usefixtures("enabled")
def test_an_import_that_fails_leaves_things_as_they_were() -> None:
    with pytest.raises(ImportError), importing():
        import statelib.nothing  # type: ignore[import-not-found]  # noqa: F401, PLC0415
    assert gc.isenabled()
    gc.disable()
    with importing():
        pass
    assert not gc.isenabled()
