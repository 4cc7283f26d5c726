//! cudarc's safe interface, as candle and burn use it: memory up to the limit, copies, kernels.
use cudarc::driver::{CudaContext, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use std::time::Instant;

const STEP: usize = 50 << 20;
const PTX: &str = ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry busy_us(.param .u64 time) { ret; }\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limit = std::env::var("CLIENT_LIMIT_MIB")?.parse::<usize>()? << 20;
    println!("is GPUs: {}", CudaContext::device_count()?);
    let context = CudaContext::new(0)?;
    println!("is name: {}", context.name()?);
    println!("is uuid: {:?}", context.uuid()?);
    println!("is asynchronous allocation: {}", context.has_async_alloc());
    println!("total total_mem: {}", context.total_mem()? >> 20);
    let (free_before, total) = context.mem_get_info()?;
    println!("total mem_get_info: {}", total >> 20);

    let stream = context.default_stream();
    let mut held = Vec::new();
    let mut reason = String::from("all");
    while held.len() * STEP < 2 * limit {
        match unsafe { stream.alloc::<u8>(STEP) } {
            Ok(slice) => held.push(slice),
            Err(DriverError(cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                reason = String::from("refused");
                break;
            }
            Err(error) => {
                reason = error.to_string();
                break;
            }
        }
    }
    println!("got alloc: {} {reason}", held.len() * STEP >> 20);
    drop(held);
    stream.synchronize()?;
    let (free_after, _) = context.mem_get_info()?;
    println!("is free again: {}", free_before as i64 - free_after as i64);

    let numbers: Vec<f32> = (0..1_000_000u32).map(|n| n as f32).collect();
    let on_gpu = stream.clone_htod(&numbers)?;
    println!("is copied back: {}", stream.clone_dtoh(&on_gpu)? == numbers);

    let module = context.load_module(Ptx::from_src(PTX))?;
    let kernel = module.load_function("busy_us")?;
    let launch = |microseconds: u64| -> Result<(), DriverError> {
        let config = LaunchConfig { grid_dim: (80, 1, 1), block_dim: (128, 1, 1), shared_mem_bytes: 0 };
        let mut launch = stream.launch_builder(&kernel);
        launch.arg(&microseconds);
        unsafe { launch.launch(config) }.map(|_| ())
    };
    launch(2000)?;
    stream.synchronize()?;
    let start = Instant::now();
    for _ in 0..500 {
        launch(2000)?;
    }
    stream.synchronize()?;
    println!("pace launch: 1000 {}", start.elapsed().as_millis());
    Ok(())
}
