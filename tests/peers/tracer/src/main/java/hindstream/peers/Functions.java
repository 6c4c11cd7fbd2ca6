package hindstream.peers;

import java.util.Arrays;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.ForeachAction;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Merger;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.kstream.Reducer;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.ValueJoinerWithKey;
import org.apache.kafka.streams.kstream.ValueMapper;
import org.apache.kafka.streams.kstream.ValueMapperWithKey;
import org.apache.kafka.streams.kstream.ValueTransformerWithKeySupplier;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;

/** Functions of tests, wrapped in ones that tell their calls. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Functions {
  private Functions() {}

  /** A function in place of another. */
  record Wrapped(Traced traced, Object function) {}

  /** What goes in place of an argument; null: it is no function of a test. */
  static Wrapped wrapped(Class<?> parameter, Object argument, Root root) {
    if (!KINDS.contains(parameter)) {
      return null;
    }
    Traced traced = root.function(parameter.getSimpleName());
    return new Wrapped(traced, function(parameter, argument, traced));
  }

  private static final List<Class<?>> KINDS = Arrays.asList(
      ValueMapper.class, ValueMapperWithKey.class, KeyValueMapper.class, Predicate.class, Reducer.class,
      Aggregator.class, Initializer.class, Merger.class, ValueJoiner.class, ValueJoinerWithKey.class,
      ForeachAction.class, Function.class, BiFunction.class, TopicNameExtractor.class, TimestampExtractor.class,
      ProcessorSupplier.class, FixedKeyProcessorSupplier.class, ValueTransformerWithKeySupplier.class);

  private static Object function(Class<?> parameter, Object of, Traced traced) {
    if (parameter == ValueMapper.class) {
      return (ValueMapper) value -> traced.call(() -> listed(((ValueMapper) of).apply(value)), value);
    }
    if (parameter == ValueMapperWithKey.class) {
      return (ValueMapperWithKey) (key, value) ->
          traced.call(() -> listed(((ValueMapperWithKey) of).apply(key, value)), key, value);
    }
    if (parameter == KeyValueMapper.class) {
      return (KeyValueMapper) (key, value) ->
          traced.call(() -> listed(((KeyValueMapper) of).apply(key, value)), key, value);
    }
    if (parameter == Predicate.class) {
      return (Predicate) (key, value) -> traced.call(() -> ((Predicate) of).test(key, value), key, value);
    }
    if (parameter == Reducer.class) {
      return (Reducer) (one, other) -> traced.call(() -> ((Reducer) of).apply(one, other), one, other);
    }
    if (parameter == Aggregator.class) {
      return (Aggregator) (key, value, aggregate) ->
          traced.call(() -> ((Aggregator) of).apply(key, value, aggregate), key, value, aggregate);
    }
    if (parameter == Initializer.class) {
      return (Initializer) () -> traced.call(() -> ((Initializer) of).apply());
    }
    if (parameter == Merger.class) {
      return (Merger) (key, one, other) ->
          traced.call(() -> ((Merger) of).apply(key, one, other), key, one, other);
    }
    if (parameter == ValueJoiner.class) {
      return (ValueJoiner) (left, right) ->
          traced.call(() -> ((ValueJoiner) of).apply(left, right), left, right);
    }
    if (parameter == ValueJoinerWithKey.class) {
      return (ValueJoinerWithKey) (key, left, right) ->
          traced.call(() -> ((ValueJoinerWithKey) of).apply(key, left, right), key, left, right);
    }
    if (parameter == ForeachAction.class) {
      return (ForeachAction) (key, value) -> traced.call(() -> {
        ((ForeachAction) of).apply(key, value);
        return null;
      }, key, value);
    }
    return other(parameter, of, traced);
  }

  private static Object other(Class<?> parameter, Object of, Traced traced) {
    if (parameter == Function.class) {
      return (Function) value -> traced.call(() -> ((Function) of).apply(value), value);
    }
    if (parameter == BiFunction.class) {
      return (BiFunction) (key, value) -> traced.call(() -> ((BiFunction) of).apply(key, value), key, value);
    }
    if (parameter == TopicNameExtractor.class) {
      return (TopicNameExtractor) (key, value, context) ->
          traced.call(() -> ((TopicNameExtractor) of).extract(key, value, context), key, value);
    }
    if (parameter == TimestampExtractor.class) {
      return (TimestampExtractor) (ConsumerRecord<Object, Object> record, long partitionTime) ->
          ((TimestampExtractor) of).extract(record, partitionTime);
    }
    if (parameter == ProcessorSupplier.class) {
      return Processors.traced((ProcessorSupplier) of, traced);
    }
    if (parameter == FixedKeyProcessorSupplier.class) {
      return Processors.traced((FixedKeyProcessorSupplier) of, traced);
    }
    return Processors.traced((ValueTransformerWithKeySupplier) of, traced);
  }

  /** What may be read only once as a list. */
  private static Object listed(Object result) {
    if (result instanceof Iterable<?> many && !(result instanceof java.util.Collection)
        && !(result instanceof KeyValue)) {
      java.util.ArrayList<Object> list = new java.util.ArrayList<>();
      many.forEach(list::add);
      return list;
    }
    return result;
  }
}
