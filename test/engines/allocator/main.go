// Allocates claims with the allocator of kube-scheduler. Reads one JSON document from standard input, and writes the results of its cases
// as a JSON list: for each claim of a case in turn the devices that it gets, or null if the node has none for it. Claims of one case see
// the devices and the capacity that those before them got.
//
// With the argument `metadata` it reads the file that a container finds about its devices as Kubernetes' own library does, and writes what
// that found in it, or why it is not valid.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/devicemetadata"
	"k8s.io/dynamic-resource-allocation/structured"
)

type input struct {
	Node    string                       `json:"node"`
	Classes []*resourceapi.DeviceClass   `json:"classes"`
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Cases   []struct {
		// Names of devices that are allocated already.
		Taken  []string                        `json:"taken"`
		Claims []resourceapi.ResourceClaimSpec `json:"claims"`
	} `json:"cases"`
}

type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return c, nil }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("no class %s", name)
}

// What API server and scheduler of Kubernetes 1.37 have on by default, as far as our claims use it.
var features = structured.Features{AdminAccess: true, PrioritizedList: true, DeviceTaints: true, ConsumableCapacity: true, PartitionableDevices: true}

func main() {
	read := run
	if len(os.Args) > 1 && os.Args[1] == "metadata" {
		read = readMetadata
	}
	if err := read(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func readMetadata() error {
	var found v1beta1.DeviceMetadata
	var invalid error
	validated := devicemetadata.DecodeMetadataWithValidationResult(&invalid)
	if err := devicemetadata.DecodeMetadataFromStream(json.NewDecoder(os.Stdin), &found, validated); err != nil {
		return err
	}
	if invalid != nil {
		return invalid
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func run() error {
	var given input
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		return err
	}
	cache := cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: given.Node}}
	results := make([][]*resourceapi.AllocationResult, len(given.Cases))
	for at, one := range given.Cases {
		state := structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		}
		for _, slice := range given.Slices {
			for _, name := range one.Taken {
				state.AllocatedDevices.Insert(structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, name))
			}
		}
		for number, spec := range one.Claims {
			name := fmt.Sprintf("claim-%d", number)
			setDefaults(&spec)
			claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: spec}
			allocator, err := structured.NewAllocator(context.Background(), features, state, classes(given.Classes), given.Slices, cache)
			if err != nil {
				return fmt.Errorf("case %d, %s: %w", at, name, err)
			}
			allocated, err := allocator.Allocate(context.Background(), node, []*resourceapi.ResourceClaim{claim})
			if err != nil {
				return fmt.Errorf("case %d, %s: %w", at, name, err)
			}
			if len(allocated) == 0 {
				results[at] = append(results[at], nil)
				continue
			}
			results[at] = append(results[at], &allocated[0])
			charge(state, allocated[0])
		}
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// setDefaults sets what the API server sets where a claim names no number of devices.
func setDefaults(spec *resourceapi.ResourceClaimSpec) {
	for _, request := range spec.Devices.Requests {
		if request.Exactly != nil && request.Exactly.AllocationMode == "" {
			request.Exactly.AllocationMode = resourceapi.DeviceAllocationModeExactCount
			request.Exactly.Count = 1
		}
	}
}

// charge takes what a claim got from what the next ones may get.
func charge(state structured.AllocatedState, allocated resourceapi.AllocationResult) {
	for _, result := range allocated.Devices.Results {
		device := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		if result.ShareID == nil {
			state.AllocatedDevices.Insert(device)
			continue
		}
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(device, result.ShareID))
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(device, result.ConsumedCapacity))
	}
}
