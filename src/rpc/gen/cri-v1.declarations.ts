// Original file: proto/cri-v1.proto

export const declarations = (): object => ({
  "nested": {
    "runtime": {
      "nested": {
        "v1": {
          "nested": {
            "RuntimeService": {
              "methods": {
                "Version": {
                  "requestType": "VersionRequest",
                  "responseType": "VersionResponse"
                },
                "Status": {
                  "requestType": "StatusRequest",
                  "responseType": "StatusResponse"
                },
                "ListPodSandbox": {
                  "requestType": "ListPodSandboxRequest",
                  "responseType": "ListPodSandboxResponse"
                },
                "PodSandboxStatus": {
                  "requestType": "PodSandboxStatusRequest",
                  "responseType": "PodSandboxStatusResponse"
                },
                "ListContainers": {
                  "requestType": "ListContainersRequest",
                  "responseType": "ListContainersResponse"
                },
                "ContainerStatus": {
                  "requestType": "ContainerStatusRequest",
                  "responseType": "ContainerStatusResponse"
                }
              }
            },
            "VersionRequest": {
              "fields": {
                "version": {
                  "type": "string",
                  "id": 1
                }
              }
            },
            "VersionResponse": {
              "fields": {
                "version": {
                  "type": "string",
                  "id": 1
                },
                "runtime_name": {
                  "type": "string",
                  "id": 2
                },
                "runtime_version": {
                  "type": "string",
                  "id": 3
                },
                "runtime_api_version": {
                  "type": "string",
                  "id": 4
                }
              }
            },
            "StatusRequest": {
              "fields": {
                "verbose": {
                  "type": "bool",
                  "id": 1
                }
              }
            },
            "StatusResponse": {
              "fields": {
                "info": {
                  "keyType": "string",
                  "type": "string",
                  "id": 2
                }
              }
            },
            "PodSandboxMetadata": {
              "fields": {
                "name": {
                  "type": "string",
                  "id": 1
                },
                "uid": {
                  "type": "string",
                  "id": 2
                },
                "namespace": {
                  "type": "string",
                  "id": 3
                },
                "attempt": {
                  "type": "uint32",
                  "id": 4
                }
              }
            },
            "PodSandboxState": {
              "values": {
                "SANDBOX_READY": 0,
                "SANDBOX_NOTREADY": 1
              }
            },
            "PodSandboxStateValue": {
              "fields": {
                "state": {
                  "type": "PodSandboxState",
                  "id": 1
                }
              }
            },
            "PodSandboxFilter": {
              "fields": {
                "id": {
                  "type": "string",
                  "id": 1
                },
                "state": {
                  "type": "PodSandboxStateValue",
                  "id": 2
                },
                "label_selector": {
                  "keyType": "string",
                  "type": "string",
                  "id": 3
                }
              }
            },
            "ListPodSandboxRequest": {
              "fields": {
                "filter": {
                  "type": "PodSandboxFilter",
                  "id": 1
                }
              }
            },
            "PodSandbox": {
              "fields": {
                "id": {
                  "type": "string",
                  "id": 1
                },
                "metadata": {
                  "type": "PodSandboxMetadata",
                  "id": 2
                },
                "state": {
                  "type": "PodSandboxState",
                  "id": 3
                },
                "created_at": {
                  "type": "int64",
                  "id": 4
                },
                "labels": {
                  "keyType": "string",
                  "type": "string",
                  "id": 5
                },
                "annotations": {
                  "keyType": "string",
                  "type": "string",
                  "id": 6
                }
              }
            },
            "ListPodSandboxResponse": {
              "fields": {
                "items": {
                  "rule": "repeated",
                  "type": "PodSandbox",
                  "id": 1
                }
              }
            },
            "PodSandboxStatusRequest": {
              "fields": {
                "pod_sandbox_id": {
                  "type": "string",
                  "id": 1
                },
                "verbose": {
                  "type": "bool",
                  "id": 2
                }
              }
            },
            "PodSandboxStatus": {
              "fields": {
                "id": {
                  "type": "string",
                  "id": 1
                },
                "metadata": {
                  "type": "PodSandboxMetadata",
                  "id": 2
                },
                "state": {
                  "type": "PodSandboxState",
                  "id": 3
                },
                "created_at": {
                  "type": "int64",
                  "id": 4
                },
                "labels": {
                  "keyType": "string",
                  "type": "string",
                  "id": 7
                },
                "annotations": {
                  "keyType": "string",
                  "type": "string",
                  "id": 8
                }
              }
            },
            "PodSandboxStatusResponse": {
              "fields": {
                "status": {
                  "type": "PodSandboxStatus",
                  "id": 1
                },
                "info": {
                  "keyType": "string",
                  "type": "string",
                  "id": 2
                }
              }
            },
            "ContainerMetadata": {
              "fields": {
                "name": {
                  "type": "string",
                  "id": 1
                },
                "attempt": {
                  "type": "uint32",
                  "id": 2
                }
              }
            },
            "ContainerState": {
              "values": {
                "CONTAINER_CREATED": 0,
                "CONTAINER_RUNNING": 1,
                "CONTAINER_EXITED": 2,
                "CONTAINER_UNKNOWN": 3
              }
            },
            "ContainerStateValue": {
              "fields": {
                "state": {
                  "type": "ContainerState",
                  "id": 1
                }
              }
            },
            "ContainerFilter": {
              "fields": {
                "id": {
                  "type": "string",
                  "id": 1
                },
                "state": {
                  "type": "ContainerStateValue",
                  "id": 2
                },
                "pod_sandbox_id": {
                  "type": "string",
                  "id": 3
                },
                "label_selector": {
                  "keyType": "string",
                  "type": "string",
                  "id": 4
                }
              }
            },
            "ListContainersRequest": {
              "fields": {
                "filter": {
                  "type": "ContainerFilter",
                  "id": 1
                }
              }
            },
            "Container": {
              "fields": {
                "id": {
                  "type": "string",
                  "id": 1
                },
                "pod_sandbox_id": {
                  "type": "string",
                  "id": 2
                },
                "metadata": {
                  "type": "ContainerMetadata",
                  "id": 3
                },
                "state": {
                  "type": "ContainerState",
                  "id": 6
                },
                "created_at": {
                  "type": "int64",
                  "id": 7
                },
                "labels": {
                  "keyType": "string",
                  "type": "string",
                  "id": 8
                },
                "annotations": {
                  "keyType": "string",
                  "type": "string",
                  "id": 9
                }
              }
            },
            "ListContainersResponse": {
              "fields": {
                "containers": {
                  "rule": "repeated",
                  "type": "Container",
                  "id": 1
                }
              }
            },
            "ContainerStatusRequest": {
              "fields": {
                "container_id": {
                  "type": "string",
                  "id": 1
                },
                "verbose": {
                  "type": "bool",
                  "id": 2
                }
              }
            },
            "Mount": {
              "fields": {
                "container_path": {
                  "type": "string",
                  "id": 1
                },
                "host_path": {
                  "type": "string",
                  "id": 2
                },
                "readonly": {
                  "type": "bool",
                  "id": 3
                }
              }
            },
            "ContainerStatus": {
              "fields": {
                "id": {
                  "type": "string",
                  "id": 1
                },
                "metadata": {
                  "type": "ContainerMetadata",
                  "id": 2
                },
                "state": {
                  "type": "ContainerState",
                  "id": 3
                },
                "created_at": {
                  "type": "int64",
                  "id": 4
                },
                "started_at": {
                  "type": "int64",
                  "id": 5
                },
                "finished_at": {
                  "type": "int64",
                  "id": 6
                },
                "exit_code": {
                  "type": "int32",
                  "id": 7
                },
                "reason": {
                  "type": "string",
                  "id": 10
                },
                "message": {
                  "type": "string",
                  "id": 11
                },
                "labels": {
                  "keyType": "string",
                  "type": "string",
                  "id": 12
                },
                "annotations": {
                  "keyType": "string",
                  "type": "string",
                  "id": 13
                },
                "mounts": {
                  "rule": "repeated",
                  "type": "Mount",
                  "id": 14
                }
              }
            },
            "ContainerStatusResponse": {
              "fields": {
                "status": {
                  "type": "ContainerStatus",
                  "id": 1
                },
                "info": {
                  "keyType": "string",
                  "type": "string",
                  "id": 2
                }
              }
            }
          }
        }
      }
    }
  }
});
