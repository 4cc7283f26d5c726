// Prints messages of the kubelet's DRA protocols as its own Go types encode them: JSON, one object a message.
//
//	cd test/agent/claims/golden && go run -mod=mod . > ../vectors.json
package main

import (
	"encoding/hex"
	"encoding/json"
	"os"

	"google.golang.org/protobuf/proto"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	v1 "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type vector struct {
	Protocol string `json:"protocol"`
	Message  string `json:"message"`
	Case     string `json:"case"`
	Hex      string `json:"hex"`
}

func main() {
	share, empty := "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", ""
	var vectors []vector
	add := func(protocol, name, what string, message proto.Message) {
		bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			panic(err)
		}
		vectors = append(vectors, vector{protocol, name, what, hex.EncodeToString(bytes)})
	}
	claim := &v1.Claim{Namespace: "team", Uid: "u-1", Name: "gpu"}
	add("v1", "NodePrepareResourcesRequest", "two claims", &v1.NodePrepareResourcesRequest{Claims: []*v1.Claim{claim, {Uid: "u-2"}}})
	add("v1", "NodePrepareResourcesRequest", "none", &v1.NodePrepareResourcesRequest{})
	device := func(id *string) *v1.Device {
		return &v1.Device{RequestNames: []string{"gpu"}, PoolName: "node/vcuda", DeviceName: "gpu-1", CdiDeviceIds: []string{"tencent.com/vcuda=slice-1-0"}, ShareId: id}
	}
	prepared := func(devices []*v1.Device, reason string) *v1.NodePrepareResourcesResponse {
		return &v1.NodePrepareResourcesResponse{Claims: map[string]*v1.NodePrepareResourceResponse{"u-1": {Devices: devices, Error: reason}}}
	}
	add("v1", "NodePrepareResourcesResponse", "share", prepared([]*v1.Device{device(&share)}, ""))
	add("v1", "NodePrepareResourcesResponse", "no share", prepared([]*v1.Device{device(nil)}, ""))
	add("v1", "NodePrepareResourcesResponse", "empty share", prepared([]*v1.Device{device(&empty)}, ""))
	add("v1", "NodePrepareResourcesResponse", "refused", prepared(nil, "no room"))
	add("v1", "NodeUnprepareResourcesRequest", "one claim", &v1.NodeUnprepareResourcesRequest{Claims: []*v1.Claim{claim}})
	add("v1", "NodeUnprepareResourcesResponse", "done", &v1.NodeUnprepareResourcesResponse{Claims: map[string]*v1.NodeUnprepareResourceResponse{"u-1": {}}})
	add("registration", "PluginInfo", "driver", &registration.PluginInfo{Type: "DRAPlugin", Name: "gpu.tencent.com", Endpoint: "/p/dra.sock", SupportedVersions: []string{"v1.DRAPlugin"}})
	add("registration", "RegistrationStatus", "refused", &registration.RegistrationStatus{PluginRegistered: false, Error: "no"})
	add("registration", "RegistrationStatus", "registered", &registration.RegistrationStatus{PluginRegistered: true})
	add("health", "NodeWatchResourcesResponse", "ill", &health.NodeWatchResourcesResponse{Devices: []*health.DeviceHealth{{Device: &health.DeviceIdentifier{PoolName: "node/vcuda", DeviceName: "gpu-1"}, Health: health.HealthStatus_UNHEALTHY, LastUpdatedTime: 1700000000, Message: "XID 79"}}})
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(vectors); err != nil {
		panic(err)
	}
}
