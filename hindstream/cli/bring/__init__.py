"""Records come in: from Kafka, or from files of a lake. Begin with `commands`."""
