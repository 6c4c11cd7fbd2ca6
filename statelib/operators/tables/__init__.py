"""Tables: what each key has now, and the operators that write, change and look it up (Kafka's ``KTable``).

Begin with `source`, then `writer`.
"""
