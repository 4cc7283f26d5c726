"""What cuda-bindings answers where no GPU is."""

from cuda.bindings import driver

print(driver.cuInit(0), driver.cuDriverGetVersion(), driver.cuDeviceGetCount())
print(driver.cuGetErrorString(driver.CUresult.CUDA_ERROR_NO_DEVICE), driver.cuCtxGetCurrent())
print(driver.cuMemAlloc(1 << 20), driver.cuMemGetInfo(), driver.cuCtxSynchronize())
