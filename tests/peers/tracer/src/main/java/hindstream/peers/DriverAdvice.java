package hindstream.peers;

import java.util.Properties;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.streams.TopologyTestDriver;

/** Woven into the test driver. */
public final class DriverAdvice {
  private DriverAdvice() {}

  /** A driver. */
  public static final class Made {
    private Made() {}

    /** Before: processors are initialised meanwhile. */
    @Advice.OnMethodEnter
    public static void enter(
        @Advice.Argument(0) Object builder,
        @Advice.Argument(value = 1, readOnly = false) Properties settings,
        @Advice.Argument(2) long now) {
      settings = Tracer.driverStarts(builder, settings, now);
    }

    /** Behind. */
    @Advice.OnMethodExit
    public static void exit(@Advice.This Object self) {
      Tracer.driverMade((TopologyTestDriver) self);
    }
  }

  /** A record is piped in. */
  public static final class Piped {
    private Piped() {}

    /** Before. */
    @Advice.OnMethodEnter
    public static void enter(
        @Advice.This Object self,
        @Advice.Argument(0) String topic,
        @Advice.Argument(1) long timestamp,
        @Advice.Argument(2) byte[] key,
        @Advice.Argument(3) byte[] value,
        @Advice.Argument(4) Headers headers) {
      Tracer.piped((TopologyTestDriver) self, topic, timestamp, key, value, headers);
    }

    /** Behind. */
    @Advice.OnMethodExit(onThrowable = Throwable.class)
    public static void exit(@Advice.Thrown Throwable error) {
      Tracer.pipedEnds(error);
    }
  }

  /** The wall clock. */
  public static final class Advanced {
    private Advanced() {}

    /** Before. */
    @Advice.OnMethodEnter
    public static void enter(@Advice.This Object self, @Advice.Argument(0) Object by) {
      Tracer.advanced((TopologyTestDriver) self, by);
    }
  }

  /** The end. */
  public static final class Closed {
    private Closed() {}

    /** Before: the stores are open. */
    @Advice.OnMethodEnter
    public static void enter(@Advice.This Object self) {
      Tracer.closed((TopologyTestDriver) self);
    }
  }
}
