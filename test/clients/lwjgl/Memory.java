import static org.lwjgl.cuda.CU.*;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.List;
import org.lwjgl.PointerBuffer;
import org.lwjgl.system.MemoryStack;
import org.lwjgl.system.MemoryUtil;

/** LWJGL's binding of the driver: memory up to the limit, copies, kernels. */
public class Memory {
  private static final long MIB = 1 << 20;
  private static final long STEP = 50;
  private static final String PTX =
      ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry busy_us(.param .u64 time) { ret; }\n";

  private static void check(int result) {
    if (result != CUDA_SUCCESS) throw new IllegalStateException("CUresult " + result);
  }

  public static void main(String[] arguments) {
    long limit = Long.parseLong(System.getenv("CLIENT_LIMIT_MIB"));
    try (MemoryStack stack = MemoryStack.stackPush()) {
      IntBuffer device = stack.mallocInt(1);
      PointerBuffer pointer = stack.mallocPointer(1);
      PointerBuffer total = stack.mallocPointer(1);
      PointerBuffer free = stack.mallocPointer(1);
      ByteBuffer name = stack.malloc(100);
      check(cuInit(0));
      check(cuDeviceGet(device, 0));
      check(cuDeviceGetName(name, device.get(0)));
      System.out.println("is name: " + MemoryUtil.memASCII(MemoryUtil.memAddress(name)));
      check(cuDeviceTotalMem(total, device.get(0)));
      System.out.println("total cuDeviceTotalMem: " + total.get(0) / MIB);
      check(cuCtxCreate(pointer, 0, device.get(0)));
      long context = pointer.get(0);
      check(cuMemGetInfo(free, total));
      long before = free.get(0);
      System.out.println("total cuMemGetInfo: " + total.get(0) / MIB);

      List<Long> held = new ArrayList<>();
      String reason = "all";
      while (held.size() * STEP < 2 * limit) {
        int result = cuMemAlloc(pointer, STEP * MIB);
        if (result != CUDA_SUCCESS) {
          reason = result == CUDA_ERROR_OUT_OF_MEMORY ? "refused" : "CUresult " + result;
          break;
        }
        held.add(pointer.get(0));
      }
      System.out.println("got cuMemAlloc: " + held.size() * STEP + " " + reason);
      for (long each : held) check(cuMemFree(each));
      check(cuMemGetInfo(free, total));
      System.out.println("is free again: " + (before - free.get(0)));

      LongBuffer numbers = stack.longs(1, 2, 3, 4);
      LongBuffer back = stack.mallocLong(4);
      check(cuMemAlloc(pointer, 32));
      check(cuMemcpyHtoD(pointer.get(0), numbers));
      check(cuMemcpyDtoH(back, pointer.get(0)));
      System.out.println("is copied back: " + numbers.equals(back));

      check(cuModuleLoadData(pointer, stack.ASCII(PTX)));
      long module = pointer.get(0);
      check(cuModuleGetFunction(pointer, module, "busy_us"));
      long kernel = pointer.get(0);
      check(cuStreamCreate(pointer, 0));
      long stream = pointer.get(0);
      PointerBuffer parameters = stack.pointers(stack.longs(2000));
      check(cuLaunchKernel(kernel, 80, 1, 1, 128, 1, 1, 0, stream, parameters, null));
      check(cuStreamSynchronize(stream));
      long start = System.nanoTime();
      for (int i = 0; i < 500; i++)
        check(cuLaunchKernel(kernel, 80, 1, 1, 128, 1, 1, 0, stream, parameters, null));
      check(cuStreamSynchronize(stream));
      System.out.println("pace cuLaunchKernel: 1000 " + (System.nanoTime() - start) / 1_000_000);
      check(cuCtxDestroy(context));
    }
  }
}
