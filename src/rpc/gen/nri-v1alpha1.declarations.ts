// Original file: proto/nri-v1alpha1.proto

export const declarations = (): object => ({
  "nested": {
    "nri": {
      "nested": {
        "pkg": {
          "nested": {
            "api": {
              "nested": {
                "v1alpha1": {
                  "nested": {
                    "Runtime": {
                      "methods": {
                        "RegisterPlugin": {
                          "requestType": "RegisterPluginRequest",
                          "responseType": "Empty"
                        }
                      }
                    },
                    "Plugin": {
                      "methods": {
                        "Configure": {
                          "requestType": "ConfigureRequest",
                          "responseType": "ConfigureResponse"
                        },
                        "Synchronize": {
                          "requestType": "SynchronizeRequest",
                          "responseType": "SynchronizeResponse"
                        },
                        "Shutdown": {
                          "requestType": "Empty",
                          "responseType": "Empty"
                        },
                        "CreateContainer": {
                          "requestType": "CreateContainerRequest",
                          "responseType": "CreateContainerResponse"
                        },
                        "StopContainer": {
                          "requestType": "ContainerRequest",
                          "responseType": "StopContainerResponse"
                        },
                        "RemovePodSandbox": {
                          "requestType": "ContainerRequest",
                          "responseType": "Empty"
                        },
                        "RemoveContainer": {
                          "requestType": "ContainerRequest",
                          "responseType": "Empty"
                        },
                        "StateChange": {
                          "requestType": "StateChangeEvent",
                          "responseType": "Empty"
                        }
                      }
                    },
                    "Empty": {
                      "fields": {}
                    },
                    "RegisterPluginRequest": {
                      "fields": {
                        "plugin_name": {
                          "type": "string",
                          "id": 1
                        },
                        "plugin_idx": {
                          "type": "string",
                          "id": 2
                        },
                        "NRI_version": {
                          "type": "string",
                          "id": 3
                        }
                      }
                    },
                    "ConfigureRequest": {
                      "fields": {
                        "config": {
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
                        "registration_timeout": {
                          "type": "int64",
                          "id": 4
                        },
                        "request_timeout": {
                          "type": "int64",
                          "id": 5
                        },
                        "NRI_version": {
                          "type": "string",
                          "id": 6
                        }
                      }
                    },
                    "ConfigureResponse": {
                      "fields": {
                        "events": {
                          "type": "int32",
                          "id": 2
                        }
                      }
                    },
                    "SynchronizeRequest": {
                      "fields": {
                        "pods": {
                          "rule": "repeated",
                          "type": "PodSandbox",
                          "id": 1
                        },
                        "containers": {
                          "rule": "repeated",
                          "type": "Container",
                          "id": 2
                        },
                        "more": {
                          "type": "bool",
                          "id": 3
                        }
                      }
                    },
                    "SynchronizeResponse": {
                      "fields": {
                        "update": {
                          "rule": "repeated",
                          "type": "ContainerUpdate",
                          "id": 1
                        },
                        "more": {
                          "type": "bool",
                          "id": 2
                        }
                      }
                    },
                    "CreateContainerRequest": {
                      "fields": {
                        "pod": {
                          "type": "PodSandbox",
                          "id": 1
                        },
                        "container": {
                          "type": "Container",
                          "id": 2
                        }
                      }
                    },
                    "CreateContainerResponse": {
                      "fields": {
                        "adjust": {
                          "type": "ContainerAdjustment",
                          "id": 1
                        }
                      }
                    },
                    "ContainerRequest": {
                      "fields": {
                        "pod": {
                          "type": "PodSandbox",
                          "id": 1
                        },
                        "container": {
                          "type": "Container",
                          "id": 2
                        }
                      }
                    },
                    "StopContainerResponse": {
                      "fields": {
                        "update": {
                          "rule": "repeated",
                          "type": "ContainerUpdate",
                          "id": 1
                        }
                      }
                    },
                    "StateChangeEvent": {
                      "fields": {
                        "event": {
                          "type": "Event",
                          "id": 1
                        },
                        "pod": {
                          "type": "PodSandbox",
                          "id": 2
                        },
                        "container": {
                          "type": "Container",
                          "id": 3
                        }
                      }
                    },
                    "Event": {
                      "values": {
                        "UNKNOWN": 0,
                        "RUN_POD_SANDBOX": 1,
                        "STOP_POD_SANDBOX": 2,
                        "REMOVE_POD_SANDBOX": 3,
                        "CREATE_CONTAINER": 4,
                        "POST_CREATE_CONTAINER": 5,
                        "START_CONTAINER": 6,
                        "POST_START_CONTAINER": 7,
                        "UPDATE_CONTAINER": 8,
                        "POST_UPDATE_CONTAINER": 9,
                        "STOP_CONTAINER": 10,
                        "REMOVE_CONTAINER": 11
                      }
                    },
                    "PodSandbox": {
                      "fields": {
                        "id": {
                          "type": "string",
                          "id": 1
                        },
                        "name": {
                          "type": "string",
                          "id": 2
                        },
                        "uid": {
                          "type": "string",
                          "id": 3
                        },
                        "namespace": {
                          "type": "string",
                          "id": 4
                        },
                        "annotations": {
                          "keyType": "string",
                          "type": "string",
                          "id": 6
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
                        "name": {
                          "type": "string",
                          "id": 3
                        },
                        "state": {
                          "type": "ContainerState",
                          "id": 4
                        },
                        "env": {
                          "rule": "repeated",
                          "type": "string",
                          "id": 8
                        },
                        "mounts": {
                          "rule": "repeated",
                          "type": "Mount",
                          "id": 9
                        },
                        "linux": {
                          "type": "LinuxContainer",
                          "id": 11
                        }
                      }
                    },
                    "ContainerState": {
                      "values": {
                        "CONTAINER_UNKNOWN": 0,
                        "CONTAINER_CREATED": 1,
                        "CONTAINER_PAUSED": 2,
                        "CONTAINER_RUNNING": 3,
                        "CONTAINER_STOPPED": 4
                      }
                    },
                    "Mount": {
                      "fields": {
                        "destination": {
                          "type": "string",
                          "id": 1
                        },
                        "type": {
                          "type": "string",
                          "id": 2
                        },
                        "source": {
                          "type": "string",
                          "id": 3
                        },
                        "options": {
                          "rule": "repeated",
                          "type": "string",
                          "id": 4
                        }
                      }
                    },
                    "LinuxContainer": {
                      "fields": {
                        "resources": {
                          "type": "LinuxResources",
                          "id": 3
                        }
                      }
                    },
                    "ContainerAdjustment": {
                      "fields": {
                        "mounts": {
                          "rule": "repeated",
                          "type": "Mount",
                          "id": 3
                        },
                        "env": {
                          "rule": "repeated",
                          "type": "KeyValue",
                          "id": 4
                        },
                        "linux": {
                          "type": "LinuxContainerAdjustment",
                          "id": 6
                        }
                      }
                    },
                    "KeyValue": {
                      "fields": {
                        "key": {
                          "type": "string",
                          "id": 1
                        },
                        "value": {
                          "type": "string",
                          "id": 2
                        }
                      }
                    },
                    "LinuxContainerAdjustment": {
                      "fields": {
                        "resources": {
                          "type": "LinuxResources",
                          "id": 2
                        }
                      }
                    },
                    "LinuxResources": {
                      "fields": {
                        "cpu": {
                          "type": "LinuxCPU",
                          "id": 2
                        }
                      }
                    },
                    "LinuxCPU": {
                      "fields": {
                        "cpus": {
                          "type": "string",
                          "id": 6
                        },
                        "mems": {
                          "type": "string",
                          "id": 7
                        }
                      }
                    },
                    "ContainerUpdate": {
                      "fields": {
                        "container_id": {
                          "type": "string",
                          "id": 1
                        }
                      }
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
});
