package hindstream.peers;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** A call of the DSL that goes on: null for those that Kafka Streams makes itself. */
public final class Call {
  final Root root;
  final ObjectNode told;
  /** With traced functions in place of those of the test. */
  public Object[] arguments;

  Call(Root root, ObjectNode told) {
    this.root = root;
    this.told = told;
  }

  /** Where calls go that are made by functions of this one. */
  ArrayNode nested(String name) {
    return told.withArray(name);
  }
}
