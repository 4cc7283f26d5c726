module clients/go-nvml

go 1.24

require github.com/NVIDIA/go-nvml v0.13.2-0
