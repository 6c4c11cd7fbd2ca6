"""A job's topology has changed: what its state still means, and what has to be filled, renamed or begun anew.

Begin with `settle`, which each plan calls; `evolution` compares two descriptions. `renames` finds nodes under other
names, `store_differences` says what a store can no longer mean, `fill` and `filled_stores` are about stores filled from
history (`past_plans`, `leading_nodes`: what that replays), and `renamed_changelogs` copies what a store had logged.
"""
