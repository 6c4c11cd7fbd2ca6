import io.confluent.connect.avro.*;
import io.debezium.data.Envelope;
import io.debezium.schema.SchemaFactory;
import java.io.*;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.time.Instant;
import java.util.*;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.json.JsonConverter;

/** Change events of a table, made by Debezium's own classes: JSON with and without schemas, and Confluent's Avro. */
public class Debezium {
  static final Schema KEY = SchemaBuilder.struct().name("shop.public.customers.Key").field("id", Schema.INT32_SCHEMA).build();
  static final Schema ROW = SchemaBuilder.struct().optional().name("shop.public.customers.Value")
      .field("id", Schema.INT32_SCHEMA).field("name", Schema.STRING_SCHEMA).field("email", Schema.OPTIONAL_STRING_SCHEMA)
      .field("born", io.debezium.time.Date.builder().optional().build())
      .field("changed", io.debezium.time.MicroTimestamp.builder().optional().build())
      .field("seen", io.debezium.time.ZonedTimestamp.builder().optional().build())
      .field("balance", Decimal.builder(2).parameter("connect.decimal.precision", "10").optional().build())
      .field("active", Schema.OPTIONAL_BOOLEAN_SCHEMA).build();
  static final Schema SOURCE = SchemaFactory.get().sourceInfoSchemaBuilder().name("io.debezium.connector.postgresql.Source")
      .field("schema", Schema.STRING_SCHEMA).field("table", Schema.STRING_SCHEMA).field("txId", Schema.OPTIONAL_INT64_SCHEMA)
      .field("lsn", Schema.OPTIONAL_INT64_SCHEMA).field("xmin", Schema.OPTIONAL_INT64_SCHEMA)
      .field("origin", Schema.OPTIONAL_STRING_SCHEMA).field("origin_lsn", Schema.OPTIONAL_INT64_SCHEMA).build();
  static final Envelope ENVELOPE = Envelope.defineSchema().withName("shop.public.customers.Envelope").withRecord(ROW).withSource(SOURCE)
      .withTransaction(SchemaFactory.get().transactionBlockSchema()).build();
  static final long COMMITTED = 1700000000000L;

  static Struct row(int id, String name, String email, Integer born, String balance) {
    return new Struct(ROW).put("id", id).put("name", name).put("email", email).put("born", born).put("changed", (COMMITTED - 1000L * id) * 1000)
        .put("seen", "2023-11-14T22:13:" + (10 + id) + ".5Z").put("balance", balance == null ? null : new BigDecimal(balance)).put("active", id % 2 == 0);
  }
  static Struct source(int n, String snapshot) {
    long ms = COMMITTED + n * 1000L + 7;
    return new Struct(SOURCE).put("version", "3.4.2.Final").put("connector", "postgresql").put("name", "shop").put("ts_ms", ms).put("ts_us", ms * 1000 + 5).put("ts_ns", (ms * 1000 + 5) * 1000)
        .put("snapshot", snapshot).put("db", "shop").put("schema", "public").put("table", "customers").put("txId", 500L + n).put("lsn", 24023128L + n * 100);
  }
  static Struct tx(Struct e, int n) {
    return e.put("transaction", new Struct(SchemaFactory.get().transactionBlockSchema()).put("id", (500 + n) + ":" + (24023128 + n * 100)).put("total_order", 1L).put("data_collection_order", 1L));
  }
  static Instant at(int n) { return Instant.ofEpochMilli(COMMITTED + n * 1000L + 250).plusNanos(123456); }

  public static void main(String[] args) throws Exception {
    Path out = Path.of(args[0]); Files.createDirectories(out);
    Object[][] events = {  // id of the key, envelope
      {1, ENVELOPE.read(row(1, "Ann", "ann@example.com", 3653, "12.50"), source(0, "first"), at(0))},
      {2, ENVELOPE.read(row(2, "Bob", null, null, null), source(0, "last"), at(0))},
      {3, tx(ENVELOPE.create(row(3, "Cy \u00e9", "cy@example.com", -1, "-0.01"), source(1, "false"), at(1)), 1)},
      {2, ENVELOPE.update(row(2, "Bob", null, null, null), row(2, "Bobby", "bob@example.com", 11000, "99999999.99"), source(2, "false"), at(2))},
      {3, ENVELOPE.update(null, row(3, "Cyd", "cy@example.com", -1, "0.00"), source(3, "false"), at(3))},
      {1, ENVELOPE.delete(row(1, "Ann", "ann@example.com", 3653, "12.50"), source(4, "false"), at(4))},
      {1, null},
      {null, ENVELOPE.truncate(source(5, "false"), at(5))},
      {4, ENVELOPE.create(row(4, "Dee", "dee@example.com", 12000, "1.10"), source(6, "false"), at(6))},
    };
    for (boolean schemas : new boolean[] {true, false}) {
      JsonConverter key = new JsonConverter(), value = new JsonConverter();
      key.configure(Map.of("schemas.enable", schemas), true); value.configure(Map.of("schemas.enable", schemas), false);
      StringBuilder lines = new StringBuilder();
      for (int i = 0; i < events.length; i++) {
        Integer id = (Integer) events[i][0]; Struct e = (Struct) events[i][1];
        String k = id == null ? "null" : new String(key.fromConnectData("shop.public.customers", KEY, new Struct(KEY).put("id", id)), "UTF-8");
        String v = e == null ? "null" : new String(value.fromConnectData("shop.public.customers", ENVELOPE.schema(), e), "UTF-8");
        lines.append("{\"offset\":" + i + ",\"timestamp\":" + (COMMITTED + i * 1000 + 400) + ",\"key\":" + k + ",\"value\":" + v + "}\n");
      }
      Files.writeString(out.resolve(schemas ? "events-with-schemas.jsonl" : "events.jsonl"), lines.toString());
    }
    AvroData avro = new AvroData(new AvroDataConfig(Map.of()));
    org.apache.avro.Schema ks = avro.fromConnectSchema(KEY), vs = avro.fromConnectSchema(ENVELOPE.schema());
    Files.writeString(out.resolve("key.avsc"), ks.toString(true) + "\n"); Files.writeString(out.resolve("value.avsc"), vs.toString(true) + "\n");
    StringBuilder lines = new StringBuilder();
    for (int i = 0; i < events.length; i++) {
      Integer id = (Integer) events[i][0]; Struct e = (Struct) events[i][1];
      String k = id == null ? null : wire(1, ks, avro.fromConnectData(KEY, new Struct(KEY).put("id", id)));
      String v = e == null ? null : wire(2, vs, avro.fromConnectData(ENVELOPE.schema(), e));
      lines.append("{\"offset\":" + i + ",\"timestamp\":" + (COMMITTED + i * 1000 + 400) + ",\"key\":" + (k == null ? null : "\"" + k + "\"") + ",\"value\":" + (v == null ? null : "\"" + v + "\"") + "}\n");
    }
    Files.writeString(out.resolve("events-avro.jsonl"), lines.toString());
  }
  static String wire(int id, org.apache.avro.Schema schema, Object datum) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    bytes.write(0); bytes.write(ByteBuffer.allocate(4).putInt(id).array());
    var encoder = EncoderFactory.get().binaryEncoder(bytes, null);
    new GenericDatumWriter<Object>(schema, new org.apache.avro.generic.GenericData() {{ addLogicalTypeConversion(new org.apache.avro.Conversions.DecimalConversion()); }}).write(datum, encoder); encoder.flush();
    return Base64.getEncoder().encodeToString(bytes.toByteArray());
  }
}
