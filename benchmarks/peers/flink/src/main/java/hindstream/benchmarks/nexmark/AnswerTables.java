package hindstream.benchmarks.nexmark;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.RowKind;

/** The connector "answer": every change as a line, 1 or -1 and the fields, with tabs between. */
public final class AnswerTables implements DynamicTableSinkFactory {
  private static final ConfigOption<String> FOLDER = ConfigOptions.key("folder").stringType().noDefaultValue();

  @Override
  public String factoryIdentifier() {
    return "answer";
  }

  @Override
  public Set<ConfigOption<?>> requiredOptions() {
    return Set.of(FOLDER);
  }

  @Override
  public Set<ConfigOption<?>> optionalOptions() {
    return Set.of();
  }

  @Override
  public DynamicTableSink createDynamicTableSink(Context context) {
    FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
    helper.validate();
    RowType type = (RowType) context.getPhysicalRowDataType().getLogicalType();
    return new Answer(type.getChildren(), helper.getOptions().get(FOLDER));
  }

  private record Answer(List<LogicalType> types, String folder) implements DynamicTableSink {
    @Override
    public ChangelogMode getChangelogMode(ChangelogMode requested) {
      return requested;
    }

    @Override
    public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
      List<LogicalType> columns = List.copyOf(types);
      String place = folder;
      Sink<RowData> sink = (WriterInitContext writer) -> new Lines(columns, place, writer);
      return SinkV2Provider.of(sink);
    }

    @Override
    public DynamicTableSink copy() {
      return this;
    }

    @Override
    public String asSummaryString() {
      return folder;
    }
  }

  private static final class Lines implements SinkWriter<RowData> {
    private static final int BUFFER_BYTES = 1 << 20;
    private static final int NULL = 1; // in no text of the events, of which some are empty

    private final List<LogicalType> types;
    private final OutputStream file;

    private Lines(List<LogicalType> types, String folder, WriterInitContext context) throws IOException {
      this.types = types;
      int task = context.getTaskInfo().getIndexOfThisSubtask();
      file = new BufferedOutputStream(Files.newOutputStream(Path.of(folder, "answer-" + task)), BUFFER_BYTES);
    }

    @Override
    public void write(RowData row, Context context) throws IOException {
      RowKind kind = row.getRowKind();
      text(kind == RowKind.INSERT || kind == RowKind.UPDATE_AFTER ? "1" : "-1");
      for (int field = 0; field < types.size(); field++) {
        file.write('\t');
        if (row.isNullAt(field)) {
          file.write(NULL);
        } else {
          write(row, field);
        }
      }
      file.write('\n');
    }

    private void write(RowData row, int field) throws IOException {
      LogicalType type = types.get(field);
      switch (type.getTypeRoot()) {
        case BIGINT -> text(Long.toString(row.getLong(field)));
        case DOUBLE -> text(Double.toString(row.getDouble(field)));
        case VARCHAR -> file.write(row.getString(field).toBytes());
        case TIMESTAMP_WITHOUT_TIME_ZONE -> text(Long.toString(row.getTimestamp(field, 3).getMillisecond()));
        case DECIMAL -> {
          DecimalType decimal = (DecimalType) type;
          text(row.getDecimal(field, decimal.getPrecision(), decimal.getScale()).toString());
        }
        default -> throw new IllegalArgumentException(type.asSummaryString());
      }
    }

    private void text(String ascii) throws IOException {
      file.write(ascii.getBytes(UTF_8));
    }

    @Override
    public void flush(boolean endOfInput) throws IOException {
      file.flush();
    }

    @Override
    public void close() throws IOException {
      file.close();
    }
  }
}
