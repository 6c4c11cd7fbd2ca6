"""What went wrong is repaired, rolled back or migrated. Begin with `repair_commands`."""
