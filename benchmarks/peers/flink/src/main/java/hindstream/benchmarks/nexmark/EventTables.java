package hindstream.benchmarks.nexmark;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.LookupFunction;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.RowType;

/** The connector "events": a topic in files, one a partition. */
public final class EventTables implements DynamicTableSourceFactory {
  private static final ConfigOption<String> FILES = ConfigOptions.key("files").stringType().noDefaultValue();
  private static final ConfigOption<Integer> PARTITIONS = ConfigOptions.key("partitions").intType().noDefaultValue();
  private static final ConfigOption<String> KINDS = ConfigOptions.key("kinds").stringType().noDefaultValue();

  @Override
  public String factoryIdentifier() {
    return "events";
  }

  @Override
  public Set<ConfigOption<?>> requiredOptions() {
    return Set.of(FILES, PARTITIONS, KINDS);
  }

  @Override
  public Set<ConfigOption<?>> optionalOptions() {
    return Set.of();
  }

  @Override
  public DynamicTableSource createDynamicTableSource(Context context) {
    FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
    helper.validate();
    return new Events(
        (RowType) context.getPhysicalRowDataType().getLogicalType(),
        helper.getOptions().get(FILES),
        helper.getOptions().get(PARTITIONS),
        helper.getOptions().get(KINDS));
  }

  private record Events(RowType type, String files, int partitions, String kinds)
      implements ScanTableSource, LookupTableSource {
    @Override
    public ChangelogMode getChangelogMode() {
      return ChangelogMode.insertOnly();
    }

    @Override
    public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
      return new DataStreamScanProvider() {
        @Override
        public DataStream<RowData> produceDataStream(ProviderContext provider, StreamExecutionEnvironment cluster) {
          return cluster.addSource(new Reader(files, partitions, kinds), files, InternalTypeInfo.of(type));
        }

        @Override
        public boolean isBounded() {
          return true;
        }
      };
    }

    @Override
    public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
      return LookupFunctionProvider.of(new ByKey(files, partitions, kinds));
    }

    @Override
    public DynamicTableSource copy() {
      return this;
    }

    @Override
    public String asSummaryString() {
      return files;
    }
  }

  /** Each subtask reads its partitions, the record with the smallest timestamp first. */
  private static final class Reader extends RichParallelSourceFunction<RowData> {
    private final String files;
    private final int partitions;
    private final String kinds;
    private volatile boolean isCancelled;

    private Reader(String files, int partitions, String kinds) {
      this.files = files;
      this.partitions = partitions;
      this.kinds = kinds;
    }

    @Override
    public void run(SourceContext<RowData> context) throws IOException {
      int tasks = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
      List<PartitionFile> opened = new ArrayList<>();
      for (int p = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask(); p < partitions; p += tasks) {
        opened.add(new PartitionFile(Path.of(files + "-" + p), kinds));
      }
      for (PartitionFile next = first(opened); next != null && !isCancelled; next = first(opened)) {
        synchronized (context.getCheckpointLock()) {
          context.collect(next.take());
        }
      }
    }

    private static PartitionFile first(List<PartitionFile> files) {
      PartitionFile first = null;
      for (PartitionFile file : files) {
        if (!file.ended() && (first == null || file.timestampMs() < first.timestampMs())) {
          first = file;
        }
      }
      return first;
    }

    @Override
    public void cancel() {
      isCancelled = true;
    }
  }

  /** Rows by their first field, all in memory. Public, as Flink asks of functions. */
  public static final class ByKey extends LookupFunction {
    private final String files;
    private final int partitions;
    private final String kinds;
    private transient Map<Long, List<RowData>> rows;

    private ByKey(String files, int partitions, String kinds) {
      this.files = files;
      this.partitions = partitions;
      this.kinds = kinds;
    }

    @Override
    public void open(FunctionContext context) throws IOException {
      rows = new HashMap<>();
      for (int p = 0; p < partitions; p++) {
        try (PartitionFile file = new PartitionFile(Path.of(files + "-" + p), kinds)) {
          while (!file.ended()) {
            RowData row = file.take();
            rows.put(row.getLong(0), List.of(row));
          }
        }
      }
    }

    @Override
    public Collection<RowData> lookup(RowData key) {
      return rows.getOrDefault(key.getLong(0), List.of());
    }
  }
}
