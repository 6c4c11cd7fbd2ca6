package hindstream.benchmarks.nexmark;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;

/**
 * Reads a partition in a file, as blocks of records; stands on one record.
 *
 * <p>A block is the number of records, the number of bytes of all keys and that of all values (int32), then the
 * timestamps (int64 milliseconds), the end of each key among the keys and of each value among the values (int32), the
 * keys, the values; all big-endian. A value is its fields in order: int64s, and strings with their length (int32).
 */
final class PartitionFile implements AutoCloseable {
  private static final int BUFFER_BYTES = 1 << 20;

  private final DataInputStream file;
  private final String kinds;
  private int records;
  private int row;
  private ByteBuffer timestamps;
  private IntBuffer keyEnds;
  private byte[] keys;
  private ByteBuffer values;

  /** Kinds of the fields: L for BIGINT, T for TIMESTAMP(3), S for STRING, and K for the key. */
  PartitionFile(Path path, String kinds) throws IOException {
    this.kinds = kinds;
    file = new DataInputStream(new BufferedInputStream(Files.newInputStream(path), BUFFER_BYTES));
    readBlock();
  }

  /** Whether there is no record any more. */
  boolean ended() {
    return row == records;
  }

  long timestampMs() {
    return timestamps.getLong(row * Long.BYTES);
  }

  /** Gives the record and goes to the next one. */
  GenericRowData take() throws IOException {
    GenericRowData taken = new GenericRowData(kinds.length());
    for (int field = 0; field < kinds.length(); field++) {
      taken.setField(field, fieldOf(kinds.charAt(field)));
    }
    row++;
    if (row == records) {
      readBlock();
    }
    return taken;
  }

  private Object fieldOf(char kind) {
    return switch (kind) {
      case 'K' -> ByteBuffer.wrap(keys, keyEnds.get(row) - Long.BYTES, Long.BYTES).getLong();
      case 'L' -> values.getLong();
      case 'T' -> TimestampData.fromEpochMillis(values.getLong());
      case 'S' -> {
        int length = values.getInt();
        int begin = values.position();
        values.position(begin + length);
        yield StringData.fromBytes(Arrays.copyOfRange(values.array(), begin, begin + length));
      }
      default -> throw new IllegalArgumentException(kinds);
    };
  }

  private void readBlock() throws IOException {
    row = 0;
    try {
      records = file.readInt();
    } catch (EOFException end) {
      records = 0;
      return;
    }
    int keyBytes = file.readInt();
    int valueBytes = file.readInt();
    timestamps = ByteBuffer.wrap(bytes(records * Long.BYTES));
    keyEnds = ByteBuffer.wrap(bytes(records * Integer.BYTES)).asIntBuffer();
    file.skipNBytes((long) records * Integer.BYTES);
    keys = bytes(keyBytes);
    values = ByteBuffer.wrap(bytes(valueBytes));
  }

  private byte[] bytes(int count) throws IOException {
    byte[] read = new byte[count];
    file.readFully(read);
    return read;
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
