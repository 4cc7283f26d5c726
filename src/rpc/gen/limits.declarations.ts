// Original file: proto/limits.proto

export const declarations = (): object => ({
  "nested": {
    "vgpu": {
      "nested": {
        "Limits": {
          "methods": {
            "List": {
              "requestType": "ListLimitsRequest",
              "responseType": "ListLimitsResponse"
            },
            "Set": {
              "requestType": "SetLimitsRequest",
              "responseType": "SetLimitsResponse"
            },
            "Release": {
              "requestType": "ReleaseLimitsRequest",
              "responseType": "SetLimitsResponse"
            }
          }
        },
        "ListLimitsRequest": {
          "fields": {}
        },
        "ListLimitsResponse": {
          "fields": {
            "containers": {
              "rule": "repeated",
              "type": "ContainerLimits",
              "id": 1
            }
          }
        },
        "ContainerLimits": {
          "fields": {
            "allocation": {
              "type": "string",
              "id": 1
            },
            "pod_uid": {
              "type": "string",
              "id": 2
            },
            "namespace": {
              "type": "string",
              "id": 3
            },
            "pod": {
              "type": "string",
              "id": 4
            },
            "container": {
              "type": "string",
              "id": 5
            },
            "devices": {
              "rule": "repeated",
              "type": "DeviceLimits",
              "id": 6
            },
            "set_by_operator": {
              "type": "bool",
              "id": 7
            },
            "unenforced": {
              "type": "bool",
              "id": 8
            }
          }
        },
        "DeviceLimits": {
          "fields": {
            "gpu_uuid": {
              "type": "string",
              "id": 1
            },
            "memory_bytes": {
              "type": "uint64",
              "id": 2
            },
            "allocated_memory_bytes": {
              "type": "uint64",
              "id": 3
            },
            "share": {
              "type": "uint32",
              "id": 4
            },
            "allocated_share": {
              "type": "uint32",
              "id": 5
            },
            "soft_limit": {
              "type": "uint32",
              "id": 6
            },
            "used_memory_bytes": {
              "type": "uint64",
              "id": 7
            },
            "used_percent": {
              "type": "double",
              "id": 8
            },
            "generation": {
              "type": "uint32",
              "id": 9
            }
          }
        },
        "SetLimitsRequest": {
          "fields": {
            "allocation": {
              "type": "string",
              "id": 1
            },
            "memory_bytes": {
              "type": "uint64",
              "id": 2
            },
            "share": {
              "type": "uint32",
              "id": 3
            },
            "soft_limit": {
              "type": "uint32",
              "id": 4
            }
          }
        },
        "ReleaseLimitsRequest": {
          "fields": {
            "allocation": {
              "type": "string",
              "id": 1
            }
          }
        },
        "SetLimitsResponse": {
          "fields": {
            "notes": {
              "rule": "repeated",
              "type": "string",
              "id": 1
            }
          }
        }
      }
    }
  }
});
