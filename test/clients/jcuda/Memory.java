import static jcuda.driver.JCudaDriver.*;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import jcuda.CudaException;
import jcuda.Pointer;
import jcuda.driver.*;

/** JCuda's driver binding: memory up to the limit, copies, kernels. */
public class Memory {
  private static final long MIB = 1 << 20;
  private static final long STEP = 50;
  private static final String PTX =
      ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry busy_us(.param .u64 time) { ret; }\n";

  public static void main(String[] arguments) {
    long limit = Long.parseLong(System.getenv("CLIENT_LIMIT_MIB"));
    JCudaDriver.setExceptionsEnabled(true);
    cuInit(0);
    CUdevice device = new CUdevice();
    cuDeviceGet(device, 0);
    byte[] name = new byte[100];
    cuDeviceGetName(name, name.length, device);
    System.out.println("is name: " + new String(name).trim());
    long[] total = {0};
    long[] free = {0};
    cuDeviceTotalMem(total, device);
    System.out.println("total cuDeviceTotalMem: " + total[0] / MIB);
    CUcontext context = new CUcontext();
    cuCtxCreate(context, 0, device);
    cuMemGetInfo(free, total);
    long before = free[0];
    System.out.println("total cuMemGetInfo: " + total[0] / MIB);

    List<CUdeviceptr> held = new ArrayList<>();
    String reason = "all";
    while (held.size() * STEP < 2 * limit) {
      try {
        CUdeviceptr pointer = new CUdeviceptr();
        cuMemAlloc(pointer, STEP * MIB);
        held.add(pointer);
      } catch (CudaException error) {
        reason = error.getMessage().equals("CUDA_ERROR_OUT_OF_MEMORY") ? "refused" : error.getMessage();
        break;
      }
    }
    System.out.println("got cuMemAlloc: " + held.size() * STEP + " " + reason);
    held.forEach(pointer -> cuMemFree(pointer));
    cuMemGetInfo(free, total);
    System.out.println("is free again: " + (before - free[0]));

    float[] numbers = new float[1000];
    float[] back = new float[1000];
    for (int i = 0; i < numbers.length; i++) numbers[i] = i;
    CUdeviceptr onGpu = new CUdeviceptr();
    cuMemAlloc(onGpu, 4 * numbers.length);
    cuMemcpyHtoD(onGpu, Pointer.to(numbers), 4 * numbers.length);
    cuMemcpyDtoH(Pointer.to(back), onGpu, 4 * numbers.length);
    System.out.println("is copied back: " + Arrays.equals(numbers, back));

    CUmodule module = new CUmodule();
    cuModuleLoadData(module, PTX);
    CUfunction kernel = new CUfunction();
    cuModuleGetFunction(kernel, module, "busy_us");
    CUstream stream = new CUstream();
    cuStreamCreate(stream, 0);
    Pointer parameters = Pointer.to(Pointer.to(new long[] {2000}));
    cuLaunchKernel(kernel, 80, 1, 1, 128, 1, 1, 0, stream, parameters, null);
    cuStreamSynchronize(stream);
    long start = System.nanoTime();
    for (int i = 0; i < 500; i++) cuLaunchKernel(kernel, 80, 1, 1, 128, 1, 1, 0, stream, parameters, null);
    cuStreamSynchronize(stream);
    System.out.println("pace cuLaunchKernel: 1000 " + (System.nanoTime() - start) / 1_000_000);
    cuCtxDestroy(context);
  }
}
