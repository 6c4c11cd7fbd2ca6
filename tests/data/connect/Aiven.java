import io.aiven.kafka.connect.common.config.*;
import io.aiven.kafka.connect.common.grouper.*;
import io.aiven.kafka.connect.common.output.OutputWriter;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.sink.SinkRecord;

/** What Aiven's sink tasks do with the classes of commons-for-apache-kafka-connect, onto the disk. */
public class Aiven {
  static class Config extends AivenCommonConfig {
    Config(Map<String, String> p) { super(def(), p); }
    static ConfigDef def() {
      ConfigDef d = new ConfigDef();
      addOutputFieldsFormatConfigGroup(d, OutputFieldType.VALUE);
      d.define(FILE_NAME_TEMPLATE_CONFIG, ConfigDef.Type.STRING, null, ConfigDef.Importance.LOW, "");
      d.define(FILE_MAX_RECORDS, ConfigDef.Type.INT, 0, ConfigDef.Importance.LOW, "");
      d.define(FILE_NAME_TIMESTAMP_TIMEZONE, ConfigDef.Type.STRING, "UTC", ConfigDef.Importance.LOW, "");
      d.define(FILE_NAME_TIMESTAMP_SOURCE, ConfigDef.Type.STRING, "event", ConfigDef.Importance.LOW, "");
      addCompressionTypeConfig(d, CompressionType.GZIP);
      return d;
    }
  }
  static void run(Path root, List<SinkRecord> records, String... more) throws Exception {
    Map<String, String> p = new HashMap<>();
    for (int i = 0; i < more.length; i += 2) p.put(more[i], more[i + 1]);
    Config config = new Config(p);
    RecordGrouper grouper = RecordGrouperFactory.newRecordGrouper(config);
    List<List<SinkRecord>> flushes = List.of(new ArrayList<>(), new ArrayList<>());
    for (int i = 0; i < records.size(); i++) flushes.get(i % 8 < 4 ? 0 : 1).add(records.get(i));  // two flushes of the task
    for (List<SinkRecord> flush : flushes) {
      flush.forEach(grouper::put);
      for (Map.Entry<String, List<SinkRecord>> file : grouper.records().entrySet()) {
        Path path = root.resolve(file.getKey()); Files.createDirectories(path.getParent());
        if (Files.exists(path) && !file.getKey().contains("key-")) throw new IllegalStateException("overwrites " + path);
        try (var out = Files.newOutputStream(path);
            var writer = OutputWriter.builder().withCompressionType(config.getCompressionType()).withExternalProperties(config.originalsStrings())
                .withOutputFields(config.getOutputFields()).withEnvelopeEnabled(config.envelopeEnabled()).build(out, config.getFormatType())) {
          writer.writeRecords(file.getValue());
        }
      }
      grouper.clear();
    }
  }
  public static void main(String[] args) throws Exception {
    Path out = Path.of(args[0]);
    String all = "key,value,offset,timestamp,headers";
    run(out.resolve("aiven-jsonl-gzip"), Main.records(true, true, "string", "struct"), "format.output.type", "jsonl", "format.output.fields", all);
    run(out.resolve("aiven-json"), Main.records(true, false, "string", "struct"), "format.output.type", "json", "format.output.fields", all, "file.compression.type", "none");
    run(out.resolve("aiven-jsonl-dated"), Main.records(false, false, "string", "struct"), "format.output.type", "jsonl", "format.output.fields", all, "file.compression.type", "zstd",
        "file.name.template", "{{topic}}/dt={{timestamp:unit=yyyy}}-{{timestamp:unit=MM}}-{{timestamp:unit=dd}}/{{topic}}-{{partition:padding=true}}-{{start_offset:padding=true}}.jsonl.zst");
    run(out.resolve("aiven-csv"), Main.records(true, false, "string", "bytes"), "format.output.type", "csv", "format.output.fields", all, "format.output.fields.value.encoding", "base64", "file.compression.type", "none");
    run(out.resolve("aiven-csv-plain"), Main.records(true, false, "string", "bytes"), "format.output.type", "csv", "format.output.fields", "key,value,offset,timestamp", "format.output.fields.value.encoding", "none", "file.compression.type", "gzip");
    run(out.resolve("aiven-parquet"), Main.records(false, true, "string", "struct"), "format.output.type", "parquet", "format.output.fields", "key,value,offset,timestamp", "file.compression.type", "none", "file.name.template", "{{topic}}-{{partition}}-{{start_offset}}.parquet");
    run(out.resolve("aiven-avro"), Main.records(false, false, "string", "struct"), "format.output.type", "avro", "format.output.fields", "key,value,offset,timestamp,headers", "file.compression.type", "none", "avro.codec", "deflate");
    run(out.resolve("aiven-jsonl-bare"), Main.records(false, false, "string", "map"), "format.output.type", "jsonl", "format.output.fields", "value", "format.output.envelope", "false", "file.compression.type", "none");
    run(out.resolve("aiven-jsonl-keyed"), Main.records(true, false, "string", "struct"), "format.output.type", "jsonl", "format.output.fields", "key,value,timestamp", "file.compression.type", "none", "file.name.template", "orders/key-{{key}}");
  }
}
