package hindstream.peers;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.concurrent.Callable;

/** A function of the test, or a processor, and what it was called with and has done. */
final class Traced {
  private static final int MOST_CALLS = 20_000;
  final int id;
  final String type;
  final ArrayNode calls = JsonNodeFactory.instance.arrayNode();
  boolean tooMany;
  ObjectNode more;

  Traced(int id, String type) {
    this.id = id;
    this.type = type;
  }

  /** It, with the calls from one number on. */
  JsonNode told(int from) {
    ObjectNode told = JsonNodeFactory.instance.objectNode();
    told.put("type", type);
    ArrayNode later = told.putArray("calls");
    for (int number = from; number < calls.size(); number++) {
      later.add(calls.get(number));
    }
    if (more != null) {
      told.setAll(more);
    }
    if (tooMany) {
      told.put("too_many", true);
    }
    return told;
  }

  void add(JsonNode call) {
    if (calls.size() >= MOST_CALLS) {
      tooMany = true;
    } else {
      calls.add(call);
    }
  }

  /** Calls it: arguments are told as they were before, the result as it is behind. */
  <R> R call(Callable<R> function, Object... arguments) {
    ObjectNode call = JsonNodeFactory.instance.objectNode();
    ArrayNode given = call.putArray("of");
    for (Object argument : arguments) {
      given.add(Values.told(argument));
    }
    add(call);
    int depth = Tracer.suspend();
    try {
      R result = function.call();
      call.set("is", Values.told(result));
      return result;
    } catch (RuntimeException | Error error) {
      call.put("threw", error.getClass().getName());
      throw error;
    } catch (Exception error) {
      call.put("threw", error.getClass().getName());
      throw new RuntimeException(error);
    } finally {
      Tracer.resume(depth);
    }
  }
}
