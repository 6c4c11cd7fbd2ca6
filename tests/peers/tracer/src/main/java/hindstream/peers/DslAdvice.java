package hindstream.peers;

import java.lang.reflect.Method;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

/** Woven into the methods of the DSL: functions among the arguments are replaced by ones that are traced. */
public final class DslAdvice {
  private DslAdvice() {}

  /** Before the call. */
  @Advice.OnMethodEnter
  public static Object enter(
      @Advice.This Object self,
      @Advice.Origin Method method,
      @Advice.AllArguments(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object[] arguments) {
    Call call = Tracer.enter(self, method, arguments);
    if (call != null) {
      arguments = call.arguments;
    }
    return call;
  }

  /** Behind it. */
  @Advice.OnMethodExit(onThrowable = Throwable.class)
  public static void exit(
      @Advice.Enter Object call,
      @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object result,
      @Advice.Thrown Throwable error) {
    Tracer.exit((Call) call, result, error);
  }
}
