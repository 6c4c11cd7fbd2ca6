package hindstream.peers;

import net.bytebuddy.asm.Advice;
import org.apache.kafka.common.header.Headers;

/** Woven into sources, and into what sinks send records by. */
public final class NodeAdvice {
  private NodeAdvice() {}

  /** A source takes up a record. */
  public static final class Taken {
    private Taken() {}

    /** Before. */
    @Advice.OnMethodEnter
    public static void enter(
        @Advice.FieldValue("context") Object context, @Advice.Argument(0) Object record) {
      Tracer.taken(context, record);
    }
  }

  /** A record is sent to a topic. */
  public static final class Sent {
    private Sent() {}

    /** Before. */
    @Advice.OnMethodEnter
    public static void enter(
        @Advice.Argument(0) String topic,
        @Advice.Argument(1) Object key,
        @Advice.Argument(2) Object value,
        @Advice.Argument(3) Headers headers,
        @Advice.Argument(5) Long timestamp) {
      Tracer.sent(topic, key, value, headers, timestamp);
    }
  }
}
