// What a monitor of Go asks NVML; the library is opened and closed several times.
package main

import (
	"fmt"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func same(what string, value any, result nvml.Return) {
	if result != nvml.SUCCESS {
		value = nvml.ErrorString(result)
	}
	fmt.Printf("is %s: %v\n", what, value)
}

// look opens the library, asks for everything, and closes the library.
func look() error {
	if result := nvml.Init(); result != nvml.SUCCESS {
		return fmt.Errorf("nvmlInit: %s", nvml.ErrorString(result))
	}
	defer nvml.Shutdown()

	driver, result := nvml.SystemGetDriverVersion()
	same("driver", driver, result)
	cuda, result := nvml.SystemGetCudaDriverVersion()
	same("CUDA", cuda, result)
	count, result := nvml.DeviceGetCount()
	same("GPUs", count, result)

	device, result := nvml.DeviceGetHandleByIndex(0)
	if result != nvml.SUCCESS {
		return fmt.Errorf("nvmlDeviceGetHandleByIndex: %s", nvml.ErrorString(result))
	}
	name, result := device.GetName()
	same("name", name, result)
	uuid, result := device.GetUUID()
	same("UUID", uuid, result)
	brand, result := device.GetBrand()
	same("brand", brand, result)
	pci, result := device.GetPciInfo()
	same("PCI device", pci.PciDeviceId, result)
	mig, _, result := device.GetMigMode()
	same("MIG", mig, result)
	limit, result := device.GetPowerManagementLimit()
	same("power limit", limit, result)
	major, minor, result := device.GetCudaComputeCapability()
	same("compute capability", fmt.Sprint(major, ".", minor), result)
	_, result = device.GetComputeRunningProcesses()
	same("processes", "answered", result)
	_, result = device.GetUtilizationRates()
	same("utilization", "answered", result)

	memory, result := device.GetMemoryInfo()
	if result != nvml.SUCCESS {
		return fmt.Errorf("nvmlDeviceGetMemoryInfo: %s", nvml.ErrorString(result))
	}
	fmt.Println("total GetMemoryInfo:", memory.Total>>20)
	return nil
}

func main() {
	for range 3 {
		if err := look(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
