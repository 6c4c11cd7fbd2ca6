"""What assignments cost a large cluster: a simulation of hosts with disks, and of runs that must wait for state."""

from __future__ import annotations
