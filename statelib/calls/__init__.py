"""How the DSL is called: it checks arguments where they are given, and knows Kafka's names for them.

Begin with `checked`.
"""

from statelib.calls.checked import arguments_checked, constructor_checked, function_checked
from statelib.calls.kafkas_names import KafkasNames, NotInThisDsl

__all__ = ["KafkasNames", "NotInThisDsl", "arguments_checked", "constructor_checked", "function_checked"]
