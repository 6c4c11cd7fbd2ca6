"""What a switch-over may be declared as."""

from __future__ import annotations

import pytest

from statelib import ConfigurationError, Handover, SwitchOver
from statelib.job.switch_over import load_switch_over

NEW, SHADOW = Handover("delays-2", "delays-2"), Handover("delays-2", "shadow")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"old": "delays-2", "new": NEW}, "two applications of the switch-over have the same id: delays-2, delays-2"),
        ({"old": "delays-1", "new": NEW, "shadow": NEW}, "have the same id: delays-1, delays-2, delays-2"),
        ({"old": "delays-1", "new": NEW, "shadow": Handover("other", "s")}, "the hand-overs are of two jobs"),
    ],
)
def test_what_cannot_be(given, message) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SwitchOver(**given)


def test_a_shadow_is_asked_for_where_it_is_needed() -> None:
    assert SwitchOver("delays-1", NEW, SHADOW).require_shadow() is SHADOW
    with pytest.raises(ConfigurationError, match="has no shadow application"):
        SwitchOver("delays-1", NEW).require_shadow()


def test_it_is_found_in_a_file(tmp_path) -> None:
    file = tmp_path / "delays.py"
    file.write_text(
        "from hindstream import Handover, SwitchOver\nswitch = SwitchOver('a', Handover('j', 'b'))\nx = 1\n"
    )
    assert load_switch_over(str(file)) == SwitchOver("a", Handover("j", "b"))
    with pytest.raises(ConfigurationError, match="this is no switch-over"):
        load_switch_over(f"{file}:x")
