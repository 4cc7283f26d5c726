//go:build tools

// Programs of the module that are built as they are.
package main

import (
	_ "github.com/NVIDIA/go-nvml/examples/compute-processes"
	_ "github.com/NVIDIA/go-nvml/examples/devices"
)
