import io.confluent.connect.s3.S3SinkConnectorConfig;
import io.confluent.connect.s3.storage.*;
import java.io.*;
import java.nio.file.*;
/** The connector's own storage class with files instead of objects. */
public class LocalStorage extends S3Storage {
  static Path root;
  public LocalStorage(S3SinkConnectorConfig conf, String url) { super(conf, url, "bucket", null); }
  @Override public boolean bucketExists() { return true; }
  @Override public boolean exists(String name) { return Files.exists(root.resolve(name)); }
  @Override public S3OutputStream create(String path, boolean overwrite, Class<?> format) {
    return format == io.confluent.connect.s3.format.parquet.ParquetFormat.class
      ? new LocalParquet(path, conf()) : new Local(path, conf());
  }
  static void save(String path, ByteArrayOutputStream bytes) throws IOException {
    Path p = root.resolve(path); Files.createDirectories(p.getParent()); Files.write(p, bytes.toByteArray());
  }
  static class Local extends S3OutputStream {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream(); final String path; final io.confluent.connect.s3.storage.CompressionType type; OutputStream wrapped;
    Local(String path, S3SinkConnectorConfig conf) { super(path, conf, null); this.path = path; this.type = conf.getCompressionType(); }
    @Override public void write(int b) { bytes.write(b); }
    @Override public void write(byte[] b, int o, int n) { bytes.write(b, o, n); }
    @Override public OutputStream wrapForCompression() { wrapped = type.wrapForOutput(this, -1); return wrapped; }
    @Override public void commit() throws IOException { if (wrapped != null) type.finalize(wrapped); save(path, bytes); }
    @Override public void close() {}
    @Override public long getPos() { return bytes.size(); }
  }
  static class LocalParquet extends S3ParquetOutputStream {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream(); final String path; boolean commit;
    LocalParquet(String path, S3SinkConnectorConfig conf) { super(path, conf, null); this.path = path; }
    @Override public void write(int b) { bytes.write(b); }
    @Override public void write(byte[] b, int o, int n) { bytes.write(b, o, n); }
    @Override public void setCommit() { commit = true; }
    @Override public void close() throws IOException { if (commit) save(path, bytes); }
    @Override public long getPos() { return bytes.size(); }
  }
}
