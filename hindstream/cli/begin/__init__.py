"""To begin: the demo, a new project, the doctor, settings, a session. Begin with `commands`."""
