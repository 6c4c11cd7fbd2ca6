import io.confluent.connect.s3.S3SinkTask;
import java.lang.reflect.Proxy;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.sink.*;

public class Main {
  static final Schema VALUE = SchemaBuilder.struct().name("Order").version(1)
      .field("order_id", Schema.STRING_SCHEMA).field("customer", Schema.STRING_SCHEMA)
      .field("amount", Schema.FLOAT64_SCHEMA).field("at", Timestamp.SCHEMA)
      .field("note", Schema.OPTIONAL_STRING_SCHEMA).build();
  static final Schema KEY = SchemaBuilder.struct().name("OrderKey").field("order_id", Schema.STRING_SCHEMA).build();
  static final long START = 1577836800000L - 5 * 60_000L;  // five minutes before 2020

  public static List<SinkRecord> records(boolean tombstones, boolean headers, String key, String value) {
    List<SinkRecord> out = new ArrayList<>();
    String[] customers = {"ann", "bob", "ann", "cy", "bob", "ann", "cy", "ann"};
    for (int partition = 0; partition < 2; partition++) {
      for (int i = 0; i < 8; i++) {
        long offset = partition == 0 ? i : i + (i >= 3 ? 4 : 0) + 100;  // partition 1 was compacted: 103 to 106 are gone
        String id = "o" + partition + i;
        long at = START + i * 100_000L + partition;
        if (partition == 0 && i == 6) at -= 400_000L;  // late
        boolean gone = tombstones && (i == 4 || i == 5);
        if (gone) id = "o" + partition + (i - 4);
        Object v = null; Schema vs = null;
        if (!gone && value.equals("struct")) {
          vs = VALUE;
          v = new Struct(VALUE).put("order_id", id).put("customer", customers[i]).put("amount", i + 0.5).put("at", new java.util.Date(at - 7)).put("note", i % 3 == 0 ? null : "n\"" + i + "\u00e9");
        } else if (!gone && value.equals("map")) {
          Map<String, Object> m = new LinkedHashMap<>();
          m.put("order_id", id); m.put("customer", customers[i]); m.put("amount", i + 0.5); if (i % 3 != 0) m.put("note", "n" + i);
          v = m;
        } else if (value.equals("bytes")) { vs = Schema.OPTIONAL_BYTES_SCHEMA; v = gone ? null : ("v" + i).getBytes(); }
        else if (!gone && value.equals("string")) { vs = Schema.OPTIONAL_STRING_SCHEMA; v = "v" + i; }
        ConnectHeaders h = new ConnectHeaders();
        if (headers) { h.addString("trace", "t" + offset); if (i % 2 == 0) h.addString("tries", "" + i).addString("trace", "again"); }
        Object k = key.equals("struct") ? new Struct(KEY).put("order_id", id) : key.equals("bytes") ? id.getBytes() : id;
        Schema ks = key.equals("struct") ? KEY : key.equals("bytes") ? Schema.OPTIONAL_BYTES_SCHEMA : Schema.STRING_SCHEMA;
        out.add(new SinkRecord("orders", partition, ks, k, vs, v, offset, at, TimestampType.CREATE_TIME, h));
      }
    }
    return out;
  }

  static void run(Path root, List<SinkRecord> records, String... more) throws Exception {
    LocalStorage.root = root;
    Map<String, String> p = new HashMap<>(Map.of("name", "sink", "connector.class", "io.confluent.connect.s3.S3SinkConnector", "topics", "orders", "s3.bucket.name", "bucket", "s3.region", "us-east-1",
        "storage.class", "LocalStorage", "flush.size", "4", "schema.compatibility", "NONE", "s3.part.size", "5242880"));
    p.put("timezone", "UTC"); p.put("locale", "en"); p.put("timestamp.extractor", "Record");
    for (int i = 0; i < more.length; i += 2) p.put(more[i], more[i + 1]);
    Set<TopicPartition> tps = Set.of(new TopicPartition("orders", 0), new TopicPartition("orders", 1));
    SinkTaskContext context = (SinkTaskContext) Proxy.newProxyInstance(Main.class.getClassLoader(), new Class<?>[] {SinkTaskContext.class},
        (o, m, a) -> m.getName().equals("assignment") ? tps : null);
    S3SinkTask task = new S3SinkTask();
    task.initialize(context);
    task.start(p);
    task.put(records);
    task.preCommit(Map.of());
    task.close(tps);
  }

  public static void main(String[] args) throws Exception {
    Path out = Path.of(args[0]);
    String F = "io.confluent.connect.s3.format.", P = "io.confluent.connect.storage.partitioner.";
    String avro = F + "avro.AvroFormat", json = F + "json.JsonFormat", parquet = F + "parquet.ParquetFormat", bytes = F + "bytearray.ByteArrayFormat";
    run(out.resolve("avro-default"), records(true, true, "string", "struct"), "format.class", avro, "partitioner.class", P + "DefaultPartitioner", "avro.codec", "deflate",
        "store.kafka.keys", "true", "keys.format.class", avro, "store.kafka.headers", "true", "headers.format.class", avro, "behavior.on.null.values", "write", "tombstone.encoded.partition", "tombstone");
    run(out.resolve("avro-daily"), records(false, false, "struct", "struct"), "format.class", avro, "partitioner.class", P + "DailyPartitioner", "store.kafka.keys", "true", "keys.format.class", avro, "rotate.interval.ms", "300000");
    run(out.resolve("json-hourly-gzip"), records(true, true, "string", "struct"), "format.class", json, "partitioner.class", P + "HourlyPartitioner", "s3.compression.type", "gzip",
        "store.kafka.keys", "true", "keys.format.class", json, "store.kafka.headers", "true", "headers.format.class", json, "behavior.on.null.values", "write");
    run(out.resolve("json-schemaless"), records(false, false, "string", "map"), "format.class", json, "partitioner.class", P + "TimeBasedPartitioner", "path.format", "'dt'=YYYY-MM-dd", "partition.duration.ms", "3600000");
    run(out.resolve("parquet-field"), records(true, true, "struct", "struct"), "format.class", parquet, "partitioner.class", P + "FieldPartitioner", "partition.field.name", "customer", "flush.size", "4",
        "store.kafka.keys", "true", "keys.format.class", parquet, "store.kafka.headers", "true", "headers.format.class", parquet, "behavior.on.null.values", "write");
    run(out.resolve("parquet-none"), records(false, true, "string", "struct"), "format.class", parquet, "partitioner.class", P + "DefaultPartitioner", "parquet.codec", "none",
        "store.kafka.keys", "true", "keys.format.class", avro, "store.kafka.headers", "true", "headers.format.class", json);
    run(out.resolve("bytes"), records(false, false, "bytes", "bytes"), "format.class", bytes, "partitioner.class", P + "DefaultPartitioner", "store.kafka.keys", "true", "keys.format.class", bytes, "format.bytearray.extension", ".bin");
  }
}
