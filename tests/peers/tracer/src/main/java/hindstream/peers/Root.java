package hindstream.peers;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** A builder or a topology, and all that has been called of it and of what it has made. */
final class Root {
  final ArrayNode calls = JsonNodeFactory.instance.arrayNode();
  final List<Traced> functions = new ArrayList<>();
  private final Map<Object, Integer> handles = new IdentityHashMap<>();
  boolean driven;
  private ArrayNode target = calls;

  /** The number of an object of the DSL. */
  int handle(Object object) {
    Tracer.ROOTS.put(object, this);
    return handles.computeIfAbsent(object, one -> handles.size());
  }

  /** Whether a call that has not failed may have added some. */
  boolean hasNodes() {
    for (var call : calls) {
      String method = call.get("method").textValue();
      if (!call.has("threw") && !method.equals("describe") && !method.equals("build")) {
        return true;
      }
    }
    return false;
  }

  void add(ObjectNode call) {
    target.add(call);
  }

  /** From now on calls go there; where they went before. */
  ArrayNode redirect(ArrayNode to) {
    ArrayNode before = target;
    target = to;
    return before;
  }

  Traced function(String type) {
    Traced made = new Traced(functions.size(), type);
    functions.add(made);
    return made;
  }
}
