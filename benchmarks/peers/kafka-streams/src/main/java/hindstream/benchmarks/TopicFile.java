package hindstream.benchmarks;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.IntBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * A partition in a file, as blocks of records. A block is the number of records, the number of bytes of all keys and
 * that of all values (int32), then the timestamps (int64 milliseconds), the end of each key among the keys and of each
 * value among the values (int32), the keys, the values; all big-endian.
 */
final class TopicFile {
  private static final int BUFFER_BYTES = 1 << 20;

  private TopicFile() {}

  /** Reads a block at a time; stands on one record. */
  static final class Reader implements AutoCloseable {
    private final DataInputStream file;
    private int records;
    private int row;
    private LongBuffer timestamps;
    private IntBuffer keyEnds;
    private IntBuffer valueEnds;
    private byte[] keys;
    private byte[] values;

    Reader(Path path) throws IOException {
      file = new DataInputStream(new BufferedInputStream(Files.newInputStream(path), BUFFER_BYTES));
      readBlock();
    }

    /** Whether there is no record any more. */
    boolean ended() {
      return row == records;
    }

    /** Goes to the next record. */
    void next() throws IOException {
      row++;
      if (row == records) {
        readBlock();
      }
    }

    long timestampMs() {
      return timestamps.get(row);
    }

    byte[] key() {
      return part(keys, keyEnds);
    }

    byte[] value() {
      return part(values, valueEnds);
    }

    private byte[] part(byte[] all, IntBuffer ends) {
      return Arrays.copyOfRange(all, row == 0 ? 0 : ends.get(row - 1), ends.get(row));
    }

    private void readBlock() throws IOException {
      row = 0;
      try {
        records = file.readInt();
      } catch (EOFException end) {
        records = 0;
        return;
      }
      keys = new byte[file.readInt()];
      values = new byte[file.readInt()];
      timestamps = bytes(records * Long.BYTES).asLongBuffer();
      keyEnds = bytes(records * Integer.BYTES).asIntBuffer();
      valueEnds = bytes(records * Integer.BYTES).asIntBuffer();
      file.readFully(keys);
      file.readFully(values);
    }

    private ByteBuffer bytes(int count) throws IOException {
      byte[] read = new byte[count];
      file.readFully(read);
      return ByteBuffer.wrap(read);
    }

    @Override
    public void close() throws IOException {
      file.close();
    }
  }

  /** Writes blocks of a fixed number of records. */
  static final class Writer implements AutoCloseable {
    private static final int BLOCK_RECORDS = 1 << 14;

    private final DataOutputStream file;
    private final ByteBuffer timestamps = ByteBuffer.allocate(BLOCK_RECORDS * Long.BYTES);
    private final ByteBuffer keyEnds = ByteBuffer.allocate(BLOCK_RECORDS * Integer.BYTES);
    private final ByteBuffer valueEnds = ByteBuffer.allocate(BLOCK_RECORDS * Integer.BYTES);
    private final ByteArrayOutputStream keys = new ByteArrayOutputStream();
    private final ByteArrayOutputStream values = new ByteArrayOutputStream();

    Writer(Path path) throws IOException {
      file = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path), BUFFER_BYTES));
    }

    void write(long timestampMs, byte[] key, byte[] value) throws IOException {
      timestamps.putLong(timestampMs);
      keys.writeBytes(key);
      keyEnds.putInt(keys.size());
      values.writeBytes(value);
      valueEnds.putInt(values.size());
      if (!timestamps.hasRemaining()) {
        writeBlock();
      }
    }

    private void writeBlock() throws IOException {
      file.writeInt(timestamps.position() / Long.BYTES);
      file.writeInt(keys.size());
      file.writeInt(values.size());
      for (ByteBuffer column : new ByteBuffer[] {timestamps, keyEnds, valueEnds}) {
        file.write(column.array(), 0, column.position());
        column.clear();
      }
      for (ByteArrayOutputStream column : new ByteArrayOutputStream[] {keys, values}) {
        column.writeTo(file);
        column.reset();
      }
    }

    @Override
    public void close() throws IOException {
      if (timestamps.position() > 0) {
        writeBlock();
      }
      file.close();
    }
  }
}
