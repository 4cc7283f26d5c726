// Original file: proto/deviceplugin-v1beta1.proto

export const declarations = (): object => ({
  "nested": {
    "v1beta1": {
      "nested": {
        "Registration": {
          "methods": {
            "Register": {
              "requestType": "RegisterRequest",
              "responseType": "Empty"
            }
          }
        },
        "DevicePlugin": {
          "methods": {
            "GetDevicePluginOptions": {
              "requestType": "Empty",
              "responseType": "DevicePluginOptions"
            },
            "ListAndWatch": {
              "requestType": "Empty",
              "responseType": "ListAndWatchResponse",
              "responseStream": true
            },
            "GetPreferredAllocation": {
              "requestType": "PreferredAllocationRequest",
              "responseType": "PreferredAllocationResponse"
            },
            "Allocate": {
              "requestType": "AllocateRequest",
              "responseType": "AllocateResponse"
            },
            "PreStartContainer": {
              "requestType": "PreStartContainerRequest",
              "responseType": "PreStartContainerResponse"
            }
          }
        },
        "Empty": {
          "fields": {}
        },
        "RegisterRequest": {
          "fields": {
            "version": {
              "type": "string",
              "id": 1
            },
            "endpoint": {
              "type": "string",
              "id": 2
            },
            "resource_name": {
              "type": "string",
              "id": 3
            },
            "options": {
              "type": "DevicePluginOptions",
              "id": 4
            }
          }
        },
        "DevicePluginOptions": {
          "fields": {
            "pre_start_required": {
              "type": "bool",
              "id": 1
            },
            "get_preferred_allocation_available": {
              "type": "bool",
              "id": 2
            }
          }
        },
        "ListAndWatchResponse": {
          "fields": {
            "devices": {
              "rule": "repeated",
              "type": "Device",
              "id": 1
            }
          }
        },
        "Device": {
          "fields": {
            "ID": {
              "type": "string",
              "id": 1
            },
            "health": {
              "type": "string",
              "id": 2
            },
            "topology": {
              "type": "TopologyInfo",
              "id": 3
            }
          }
        },
        "TopologyInfo": {
          "fields": {
            "nodes": {
              "rule": "repeated",
              "type": "NUMANode",
              "id": 1
            }
          }
        },
        "NUMANode": {
          "fields": {
            "ID": {
              "type": "int64",
              "id": 1
            }
          }
        },
        "PreferredAllocationRequest": {
          "fields": {
            "container_requests": {
              "rule": "repeated",
              "type": "ContainerPreferredAllocationRequest",
              "id": 1
            }
          }
        },
        "ContainerPreferredAllocationRequest": {
          "fields": {
            "available_deviceIDs": {
              "rule": "repeated",
              "type": "string",
              "id": 1
            },
            "must_include_deviceIDs": {
              "rule": "repeated",
              "type": "string",
              "id": 2
            },
            "allocation_size": {
              "type": "int32",
              "id": 3
            }
          }
        },
        "PreferredAllocationResponse": {
          "fields": {
            "container_responses": {
              "rule": "repeated",
              "type": "ContainerPreferredAllocationResponse",
              "id": 1
            }
          }
        },
        "ContainerPreferredAllocationResponse": {
          "fields": {
            "deviceIDs": {
              "rule": "repeated",
              "type": "string",
              "id": 1
            }
          }
        },
        "AllocateRequest": {
          "fields": {
            "container_requests": {
              "rule": "repeated",
              "type": "ContainerAllocateRequest",
              "id": 1
            }
          }
        },
        "ContainerAllocateRequest": {
          "fields": {
            "devicesIDs": {
              "rule": "repeated",
              "type": "string",
              "id": 1
            }
          }
        },
        "AllocateResponse": {
          "fields": {
            "container_responses": {
              "rule": "repeated",
              "type": "ContainerAllocateResponse",
              "id": 1
            }
          }
        },
        "ContainerAllocateResponse": {
          "fields": {
            "envs": {
              "keyType": "string",
              "type": "string",
              "id": 1
            },
            "mounts": {
              "rule": "repeated",
              "type": "Mount",
              "id": 2
            },
            "devices": {
              "rule": "repeated",
              "type": "DeviceSpec",
              "id": 3
            },
            "annotations": {
              "keyType": "string",
              "type": "string",
              "id": 4
            },
            "cdi_devices": {
              "rule": "repeated",
              "type": "CDIDevice",
              "id": 5
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
            "read_only": {
              "type": "bool",
              "id": 3
            }
          }
        },
        "DeviceSpec": {
          "fields": {
            "container_path": {
              "type": "string",
              "id": 1
            },
            "host_path": {
              "type": "string",
              "id": 2
            },
            "permissions": {
              "type": "string",
              "id": 3
            }
          }
        },
        "CDIDevice": {
          "fields": {
            "name": {
              "type": "string",
              "id": 1
            }
          }
        },
        "PreStartContainerRequest": {
          "fields": {
            "devicesIDs": {
              "rule": "repeated",
              "type": "string",
              "id": 1
            }
          }
        },
        "PreStartContainerResponse": {
          "fields": {}
        }
      }
    }
  }
});
