package hindstream.benchmarks;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

/** Puts, then reads, of a versioned store: the file that {@code benchmarks/versioned/cases.py} writes. */
record VersionedOperations(
    String[] keys, int[] putKey, long[] putTime, long[] putValue, int[] readKey, long[] readTime) {
  static final int WARM_UP = 20_000;

  /** Stands for an answer that is not there; values are not negative. */
  static final long NOTHING = -7;

  static VersionedOperations read(Path path) throws IOException {
    ByteBuffer file = ByteBuffer.wrap(Files.readAllBytes(path));
    String[] keys = new String[(int) file.getLong()];
    for (int i = 0; i < keys.length; i++) {
      keys[i] = "key-%08d".formatted(i);
    }
    int puts = (int) file.getLong();
    int reads = (int) file.getLong();
    return new VersionedOperations(
        keys, ints(file, puts), longs(file, puts), longs(file, puts), ints(file, reads), longs(file, reads));
  }

  private static int[] ints(ByteBuffer file, int count) {
    int[] read = new int[count];
    file.asIntBuffer().get(read);
    file.position(file.position() + count * Integer.BYTES);
    return read;
  }

  private static long[] longs(ByteBuffer file, int count) {
    long[] read = new long[count];
    file.asLongBuffer().get(read);
    file.position(file.position() + count * Long.BYTES);
    return read;
  }
}
