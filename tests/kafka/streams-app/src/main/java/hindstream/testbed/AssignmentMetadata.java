package hindstream.testbed;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;

/**
 * Reads metadata of assignments, a line of hexadecimal digits each, {@code S} or {@code A} before them; answers with what
 * Kafka writes of it again: a subscription as it was read, and made anew of its fields.
 */
public final class AssignmentMetadata {
  private AssignmentMetadata() {}

  public static void main(String[] arguments) throws IOException {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      ByteBuffer data = ByteBuffer.wrap(HexFormat.of().parseHex(line.substring(2)));
      System.out.println(line.startsWith("S") ? subscription(data) : hex(AssignmentInfo.decode(data).encode()));
    }
  }

  private static String subscription(ByteBuffer data) {
    SubscriptionInfo info = SubscriptionInfo.decode(data);
    SubscriptionInfo anew =
        new SubscriptionInfo(
            info.version(),
            info.latestSupportedVersion(),
            info.processId(),
            info.userEndPoint(),
            info.taskOffsetSums(),
            (byte) 0,
            0,
            Map.of());
    return hex(info.encode()) + " " + hex(anew.encode());
  }

  private static String hex(ByteBuffer data) {
    byte[] bytes = new byte[data.rewind().remaining()];
    data.get(bytes);
    return HexFormat.of().formatHex(bytes);
  }
}
