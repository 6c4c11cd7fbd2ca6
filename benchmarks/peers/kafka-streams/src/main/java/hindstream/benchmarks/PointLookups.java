package hindstream.benchmarks;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;

/** Bloom filters for what lies in memory too: most look-ups of ids find nothing. */
public final class PointLookups implements RocksDBConfigSetter {
  private static final double BLOOM_SHARE_OF_WRITE_BUFFER = 0.1;

  @Override
  public void setConfig(String store, Options options, Map<String, Object> configuration) {
    options.setOptimizeFiltersForHits(false);
    options.setMemtableWholeKeyFiltering(true);
    options.setMemtablePrefixBloomSizeRatio(BLOOM_SHARE_OF_WRITE_BUFFER);
  }

  @Override
  public void close(String store, Options options) {}
}
