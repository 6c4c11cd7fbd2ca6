package hindstream.testbed;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Arrays;

/** Runs a main class until the standard input ends, which it does when the process that started this one is gone. */
public final class Attached {
  private static final int STOP_MS = 20_000;

  private Attached() {}

  /** Arguments: the class, then its own. */
  public static void main(String[] arguments) throws ReflectiveOperationException {
    startDaemon("attached", Attached::exitAtEndOfInput);
    String[] own = Arrays.copyOfRange(arguments, 1, arguments.length);
    Class.forName(arguments[0]).getMethod("main", String[].class).invoke(null, (Object) own);
  }

  private static void exitAtEndOfInput() {
    try {
      System.in.transferTo(OutputStream.nullOutputStream());
    } catch (IOException gone) {
      // as good as its end
    }
    startDaemon("impatient", Attached::haltLater);
    System.exit(0);
  }

  /** For shutdown hooks that wait for what never comes. */
  private static void haltLater() {
    try {
      Thread.sleep(STOP_MS);
    } catch (InterruptedException halt) {
      // at once
    }
    Runtime.getRuntime().halt(1);
  }

  private static void startDaemon(String name, Runnable body) {
    Thread thread = new Thread(body, name);
    thread.setDaemon(true);
    thread.start();
  }
}
