//! What a monitor of Rust asks NVML; the library is opened and closed several times.
use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use std::fmt::Debug;

fn same<T: Debug>(what: &str, value: Result<T, NvmlError>) {
    match value {
        Ok(value) => println!("is {what}: {value:?}"),
        Err(error) => println!("is {what}: {error}"),
    }
}

/// Of what changes from moment to moment, only that it is answered.
fn answered<T>(what: &str, value: Result<T, NvmlError>) {
    same(what, value.map(|_| "answered"));
}

fn look(device: &Device) -> Result<(), NvmlError> {
    same("name", device.name());
    same("brand", device.brand());
    same("uuid", device.uuid());
    same("serial", device.serial());
    same("index", device.index());
    same("minor number", device.minor_number());
    same("pci", device.pci_info());
    same("architecture", device.architecture());
    same("compute capability", device.cuda_compute_capability());
    same("cores", device.num_cores());
    same("compute mode", device.compute_mode());
    same("MIG", device.mig_mode());
    same("ECC", device.is_ecc_enabled());
    same("board", device.board_id());
    same("several GPUs on the board", device.is_multi_gpu_board());
    same("fans", device.num_fans());
    same("fan speed", device.fan_speed(0));
    same("power limit", device.power_management_limit());
    same("enforced power limit", device.enforced_power_limit());
    same("clock", device.clock_info(Clock::Graphics));
    same("highest clock", device.max_clock_info(Clock::SM));
    same("link generation", device.current_pcie_link_gen());
    same("link width", device.current_pcie_link_width());
    same("bus width", device.memory_bus_width());
    same("VBIOS", device.vbios_version());
    same("throttle reasons", device.current_throttle_reasons());
    same("performance state", device.performance_state());
    same("encoder", device.encoder_utilization());
    same("decoder", device.decoder_utilization());
    answered("power", device.power_usage());
    answered("energy", device.total_energy_consumption());
    answered("temperature", device.temperature(TemperatureSensor::Gpu));
    answered("PCIe throughput", device.pcie_throughput(PcieUtilCounter::Send));
    answered("utilization", device.utilization_rates());
    answered("compute processes", device.running_compute_processes());
    answered("graphics processes", device.running_graphics_processes());
    answered("BAR1", device.bar1_memory_info());
    println!("total memory_info: {}", device.memory_info()?.total >> 20);
    Ok(())
}

fn main() -> Result<(), NvmlError> {
    for _ in 0..3 {
        // The builder takes the name that containers have; `init` alone asks for the name of development packages.
        let nvml = Nvml::builder().lib_path("libnvidia-ml.so.1".as_ref()).init()?;
        same("driver", nvml.sys_driver_version());
        same("CUDA", nvml.sys_cuda_driver_version());
        same("GPUs", nvml.device_count());
        look(&nvml.device_by_index(0)?)?;
    }
    Ok(())
}
