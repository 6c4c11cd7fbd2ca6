"""How the DSL is called: arguments that are looked at when they are given, and what Kafka's own names are here."""

from statelib.calls.checked import arguments_checked, constructor_checked, function_checked
from statelib.calls.kafkas_names import KafkasNames, NotInThisDsl

__all__ = ["KafkasNames", "NotInThisDsl", "arguments_checked", "constructor_checked", "function_checked"]
