"""Jobs, topics, state and results are looked at. Begin with `commands`."""
