"""What versioned stores cost (KIP-889): ours beside Kafka Streams' own. Begin with ``cases.py``."""
