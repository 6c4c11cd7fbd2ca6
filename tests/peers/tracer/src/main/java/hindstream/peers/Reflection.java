package hindstream.peers;

import java.lang.reflect.Field;

/** Fields of others. */
final class Reflection {
  private Reflection() {}

  static Object get(Field field, Object of) {
    try {
      field.setAccessible(true);
      return field.get(of);
    } catch (ReflectiveOperationException | RuntimeException closed) {
      return "?" + closed.getClass().getSimpleName();
    }
  }

  static void set(Field field, Object of, Object value) {
    try {
      field.setAccessible(true);
      field.set(of, value);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  static Object get(Object of, String name) {
    for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (field.getName().equals(name)) {
          return get(field, of);
        }
      }
    }
    throw new IllegalArgumentException(of.getClass() + " has no field " + name);
  }
}
