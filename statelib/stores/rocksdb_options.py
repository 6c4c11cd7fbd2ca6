"""How RocksDB is set for a batch job, and why.

* The write-ahead log is on but never synced. State is made durable by checkpoints, so a power cut may lose what
  came after the last one; a killed process loses nothing, and data and position stay together. Without the log a
  write costs a fifth less CPU, but families would be flushed one by one, and a kill between two flushes would tear
  them apart.
* Memory is bounded by one number: the block cache, to which index blocks, filters and write buffers are charged.
* Point look-ups are mostly misses (new keys), so every SST has a bloom filter. Many go in groups of 64: for keys in
  bytewise order that takes half the time of one by one, in any other order about the same.
* Filters and indices are partitioned: a filter in one piece is 2 MB where a file holds a million keys, more than a
  shard of the cache takes, and would be read anew for each look-up.
* One thread opens the files of a family. They are few, and 16 threads, started anew for each family, take longer.
* The system reads ahead around what is looked up. It has forgotten a table file that was written a moment ago, and
  reading a spill's block by block would double what look-ups in it take.
* LZ4: state is written once a slice and read a few times.
* Files are merged in tiers, in the background or when asked: see `statelib.stores.rocksdb_compaction`.
"""

from __future__ import annotations

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    WriteBufferManager,
)

from statelib.stores.rocksdb_compaction import in_tiers

DEFAULT_MEMORY_BYTES = 128 << 20
_BLOOM_BITS_PER_KEY = 10


def database_options(memory_bytes: int, *, compacts_itself: bool) -> Options:
    """The options of a database and of its column families; arguments as of `RocksDbBackend`."""
    cache = Cache(memory_bytes)
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_bloom_filter(_BLOOM_BITS_PER_KEY, False)
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_max_file_opening_threads(1)
    options.set_advise_random_on_open(False)
    in_tiers(options, in_background=compacts_itself)
    options.set_write_buffer_manager(
        WriteBufferManager.new_write_buffer_manager_with_cache(memory_bytes // 2, False, cache)
    )
    return options
