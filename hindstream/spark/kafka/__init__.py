"""Topics of Kafka read by Spark, and applications taken over from there: see `hindstream.kafka`.

Begin with `archive`.
"""
