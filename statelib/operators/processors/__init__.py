"""Custom processors, the calls that they schedule and the stores that they use (KIP-820).

Begin with `definition`, then `operator`.
"""
