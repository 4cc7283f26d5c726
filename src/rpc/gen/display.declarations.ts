// Original file: proto/display.proto

export const declarations = (): object => ({
  "nested": {
    "display": {
      "nested": {
        "GPUDisplay": {
          "methods": {
            "PrintGraph": {
              "requestType": "Empty",
              "responseType": "GraphResponse"
            },
            "PrintUsages": {
              "requestType": "Empty",
              "responseType": "UsageResponse"
            },
            "Version": {
              "requestType": "Empty",
              "responseType": "VersionResponse"
            }
          }
        },
        "Empty": {
          "fields": {}
        },
        "GraphResponse": {
          "fields": {
            "graph": {
              "type": "string",
              "id": 1
            }
          }
        },
        "UsageResponse": {
          "fields": {
            "usage": {
              "keyType": "string",
              "type": "ContainerStat",
              "id": 1
            }
          }
        },
        "VersionResponse": {
          "fields": {
            "version": {
              "type": "string",
              "id": 1
            }
          }
        },
        "ContainerStat": {
          "fields": {
            "stat": {
              "keyType": "string",
              "type": "Devices",
              "id": 1
            },
            "project": {
              "type": "string",
              "id": 2
            },
            "user": {
              "type": "string",
              "id": 3
            },
            "cluster": {
              "type": "string",
              "id": 4
            },
            "spec": {
              "keyType": "string",
              "type": "Spec",
              "id": 5
            }
          }
        },
        "Devices": {
          "fields": {
            "dev": {
              "rule": "repeated",
              "type": "DeviceInfo",
              "id": 1
            }
          }
        },
        "DeviceInfo": {
          "fields": {
            "id": {
              "type": "string",
              "id": 1
            },
            "card_idx": {
              "type": "string",
              "id": 2
            },
            "gpu": {
              "type": "float",
              "id": 10
            },
            "mem": {
              "type": "float",
              "id": 11
            },
            "pids": {
              "rule": "repeated",
              "type": "int32",
              "id": 12
            },
            "device_mem": {
              "type": "float",
              "id": 13
            }
          }
        },
        "Spec": {
          "fields": {
            "gpu": {
              "type": "float",
              "id": 1
            },
            "mem": {
              "type": "float",
              "id": 2
            }
          }
        }
      }
    }
  }
});
