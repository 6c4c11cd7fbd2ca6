package hindstream.peers;

import static net.bytebuddy.matcher.ElementMatchers.isBridge;
import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.isPublic;
import static net.bytebuddy.matcher.ElementMatchers.isStatic;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import java.lang.instrument.Instrumentation;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;

/** Has the DSL, the driver, sources and the collector of records tell {@link Tracer} what they do. */
public final class Agent {
  private static final String STREAMS = "org.apache.kafka.streams.";
  private static final String INTERNALS = STREAMS + "kstream.internals.";
  private static final String[] DSL = {
    STREAMS + "StreamsBuilder",
    STREAMS + "Topology",
    INTERNALS + "KStreamImpl",
    INTERNALS + "KTableImpl",
    INTERNALS + "KGroupedStreamImpl",
    INTERNALS + "KGroupedTableImpl",
    INTERNALS + "BranchedKStreamImpl",
    INTERNALS + "TimeWindowedKStreamImpl",
    INTERNALS + "SessionWindowedKStreamImpl",
    INTERNALS + "SlidingWindowedKStreamImpl",
    INTERNALS + "CogroupedKStreamImpl",
    INTERNALS + "TimeWindowedCogroupedKStreamImpl",
    INTERNALS + "SessionWindowedCogroupedKStreamImpl",
    INTERNALS + "SlidingWindowedCogroupedKStreamImpl",
  };

  private Agent() {}

  /** Called by Java before {@link Main}. */
  public static void premain(String arguments, Instrumentation instrumentation) {
    new AgentBuilder.Default()
        .disableClassFormatChanges()
        .with(AgentBuilder.Listener.StreamWriting.toSystemError().withErrorsOnly())
        .type(namedOneOf(DSL))
        .transform((b, type, loader, module, domain) -> b.visit(
            Advice.to(DslAdvice.class)
                .on(isPublic().and(not(isStatic())).and(not(isBridge())).and(not(isConstructor()))
                    .and(not(namedOneOf("toString", "hashCode", "equals"))))))
        .type(named(STREAMS + "TopologyTestDriver"))
        .transform((b, type, loader, module, domain) -> b
            .visit(Advice.to(DriverAdvice.Made.class).on(isConstructor().and(takesArguments(3)).and(
                net.bytebuddy.matcher.ElementMatchers.takesArgument(2, long.class))))
            .visit(Advice.to(DriverAdvice.Piped.class).on(named("pipeRecord").and(
                net.bytebuddy.matcher.ElementMatchers.takesArgument(1, long.class))))
            .visit(Advice.to(DriverAdvice.Advanced.class).on(named("advanceWallClockTime").and(takesArguments(1))))
            .visit(Advice.to(DriverAdvice.Closed.class).on(named("close").and(takesArguments(0)))))
        .type(named(STREAMS + "processor.internals.SourceNode"))
        .transform((b, type, loader, module, domain) -> b.visit(
            Advice.to(NodeAdvice.Taken.class).on(named("process").and(not(isBridge())))))
        .type(named(STREAMS + "processor.internals.RecordCollectorImpl"))
        .transform((b, type, loader, module, domain) -> b.visit(
            Advice.to(NodeAdvice.Sent.class).on(named("send").and(takesArguments(10)).and(
                net.bytebuddy.matcher.ElementMatchers.takesArgument(4, Integer.class)))))
        .installOn(instrumentation);
  }
}
