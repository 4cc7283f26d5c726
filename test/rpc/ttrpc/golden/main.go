// Prints bytes as the Go modules of ttrpc and of the Node Resource Interface put them on a socket: JSON, one object a
// case.
//
//	cd test/rpc/ttrpc/golden && go run -mod=mod . > ../vectors.json
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"strings"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

type vector struct {
	Kind string `json:"kind"`
	Case string `json:"case"`
	Hex  string `json:"hex"`
}

var vectors []vector

func add(kind, what string, bytes []byte) {
	vectors = append(vectors, vector{kind, what, hex.EncodeToString(bytes)})
}

func message(what string, m proto.Message) {
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	add("message", what, bytes)
}

// What a peer writes until it is silent.
func recorded(conn net.Conn) []byte {
	var bytes []byte
	buffer := make([]byte, 65536)
	for {
		conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		n, err := conn.Read(buffer)
		bytes = append(bytes, buffer[:n]...)
		if err != nil {
			return bytes
		}
	}
}

type runtime struct{ answer error }

func (r runtime) RegisterPlugin(context.Context, *api.RegisterPluginRequest) (*api.Empty, error) {
	return &api.Empty{}, r.answer
}

func (r runtime) UpdateContainers(context.Context, *api.UpdateContainersRequest) (*api.UpdateContainersResponse, error) {
	return &api.UpdateContainersResponse{}, r.answer
}

// Everything that a plugin in Go writes when it registers on connection 2.
func registration(name string) []byte {
	ours, theirs := net.Pipe()
	mux := multiplex.Multiplex(theirs)
	conn, err := mux.Open(multiplex.RuntimeServiceConn)
	if err != nil {
		panic(err)
	}
	client := api.NewRuntimeClient(ttrpc.NewClient(conn))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	go client.RegisterPlugin(ctx, &api.RegisterPluginRequest{PluginName: name, PluginIdx: "90"})
	return withoutTimeout(recorded(ours))
}

// The time that is left differs from run to run: its field is set to one second. It is the last one, tag 0x20.
func withoutTimeout(bytes []byte) []byte {
	const header = 8 + 10
	if len(bytes) < header || len(bytes) > 8+4096 {
		return bytes
	}
	var request ttrpc.Request
	if err := proto.Unmarshal(bytes[header:], &request); err != nil {
		panic(err)
	}
	request.TimeoutNano = int64(time.Second)
	payload, err := proto.MarshalOptions{Deterministic: true}.Marshal(&request)
	if err != nil {
		panic(err)
	}
	fixed := append([]byte{}, bytes[:header]...)
	fixed[6], fixed[7] = byte((10+len(payload))>>8), byte(10+len(payload))
	fixed[10], fixed[11] = byte(len(payload)>>8), byte(len(payload))
	return append(fixed, payload...)
}

// Everything that a runtime in Go writes when `request`, bytes of a plugin, comes to connection 2.
func answer(request []byte, result error) []byte {
	ours, theirs := net.Pipe()
	mux := multiplex.Multiplex(theirs)
	listener, err := mux.Listen(multiplex.RuntimeServiceConn)
	if err != nil {
		panic(err)
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		panic(err)
	}
	api.RegisterRuntimeService(server, runtime{result})
	go server.Serve(context.Background(), listener)
	go ours.Write(request)
	bytes := recorded(ours)
	mux.Close()
	return bytes
}

func main() {
	short := registration("gpu-manager")
	add("stream", "registration", short)
	add("stream", "registration answered", answer(short, nil))
	add("stream", "registration refused", answer(short, status.Error(codes.InvalidArgument, "no such index")))
	unknown := append([]byte{}, short...)
	at := strings.Index(string(unknown), "RegisterPlugin")
	copy(unknown[at:], "RegisterPlugiN")
	add("stream", "unknown method answered", answer(unknown, nil))
	long := registration(strings.Repeat("n", 5000))
	add("chunks", "message of more than one chunk", long[:8])
	add("chunks", "its second chunk", long[8+4096:8+4096+8])

	pod := &api.PodSandbox{Id: "s1", Name: "trainer", Uid: "u-1", Namespace: "team", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"tencent.com/gpu-numa": "strict"}, RuntimeHandler: "runc", Linux: &api.LinuxPodSandbox{CgroupParent: "/kubepods/podu-1"}, Pid: 7, Ips: []string{"10.0.0.1"}}
	container := &api.Container{Id: "c1", PodSandboxId: "s1", Name: "main", State: api.ContainerState_CONTAINER_RUNNING, Labels: map[string]string{"x": "y"}, Args: []string{"/bin/sleep", "1"}, Env: []string{"PATH=/bin", "LD_LIBRARY_PATH=/opt"}, Mounts: []*api.Mount{{Destination: "/etc/vcuda", Type: "bind", Source: "/vm/0123456789abcdef", Options: []string{"rbind", "ro"}}}, Linux: &api.LinuxContainer{Devices: []*api.LinuxDevice{{Path: "/dev/nvidia0", Type: "c", Major: 195, FileMode: api.FileMode(uint32(0))}}, Resources: &api.LinuxResources{Cpu: &api.LinuxCPU{Shares: api.UInt64(uint64(2)), Quota: api.Int64(int64(0)), Cpus: "0-3", Mems: "0"}}, OomScoreAdj: api.Int(-5), CgroupsPath: "/kubepods/podu-1/c1"}, Pid: 8, CreatedAt: 1, CDIDevices: []*api.CDIDevice{{Name: "a/b=c"}}, User: &api.User{Uid: 5}}
	message("RegisterPluginRequest", &api.RegisterPluginRequest{PluginName: "gpu-manager", PluginIdx: "90"})
	message("ConfigureRequest", &api.ConfigureRequest{RuntimeName: "containerd", RuntimeVersion: "v2.3.7", RegistrationTimeout: 5000, RequestTimeout: 2000, NRIVersion: "v0.12.0"})
	events := api.MustParseEventMask("CreateContainer", "StopContainer", "RemoveContainer", "RemovePodSandbox")
	message("ConfigureResponse", &api.ConfigureResponse{Events: int32(events)})
	message("SynchronizeRequest", &api.SynchronizeRequest{Pods: []*api.PodSandbox{pod}, Containers: []*api.Container{container}, More: true})
	message("SynchronizeResponse", &api.SynchronizeResponse{More: true})
	message("CreateContainerRequest", &api.CreateContainerRequest{Pod: pod, Container: container})
	adjust := &api.ContainerAdjustment{}
	adjust.RemoveEnv("LD_LIBRARY_PATH")
	adjust.AddEnv("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64:/opt")
	adjust.RemoveMount("/etc/vcuda")
	adjust.AddMount(&api.Mount{Destination: "/etc/vcuda", Type: "bind", Source: "/vm/0123456789abcdef", Options: []string{"rbind", "rprivate", "ro", "nosuid", "nodev"}})
	adjust.SetLinuxCPUSetCPUs("2-3")
	message("CreateContainerResponse", &api.CreateContainerResponse{Adjust: adjust})
	message("CreateContainerResponse empty", &api.CreateContainerResponse{})
	message("StopContainerRequest", &api.StopContainerRequest{Pod: &api.PodSandbox{Id: "s1"}, Container: container})
	message("StateChangeEvent", &api.StateChangeEvent{Event: api.Event_REMOVE_POD_SANDBOX, Pod: pod})

	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(vectors); err != nil {
		panic(err)
	}
}
