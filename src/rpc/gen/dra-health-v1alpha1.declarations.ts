// Original file: proto/dra-health-v1alpha1.proto

export const declarations = (): object => ({
  "nested": {
    "v1alpha1": {
      "nested": {
        "DRAResourceHealth": {
          "methods": {
            "NodeWatchResources": {
              "requestType": "NodeWatchResourcesRequest",
              "responseType": "NodeWatchResourcesResponse",
              "responseStream": true
            }
          }
        },
        "NodeWatchResourcesRequest": {
          "fields": {}
        },
        "HealthStatus": {
          "values": {
            "UNKNOWN": 0,
            "HEALTHY": 1,
            "UNHEALTHY": 2
          }
        },
        "DeviceIdentifier": {
          "fields": {
            "pool_name": {
              "type": "string",
              "id": 1
            },
            "device_name": {
              "type": "string",
              "id": 2
            }
          }
        },
        "DeviceHealth": {
          "fields": {
            "device": {
              "type": "DeviceIdentifier",
              "id": 1
            },
            "health": {
              "type": "HealthStatus",
              "id": 2
            },
            "last_updated_time": {
              "type": "int64",
              "id": 3
            },
            "health_check_timeout_seconds": {
              "type": "int64",
              "id": 4
            },
            "message": {
              "type": "string",
              "id": 5
            }
          }
        },
        "NodeWatchResourcesResponse": {
          "fields": {
            "devices": {
              "rule": "repeated",
              "type": "DeviceHealth",
              "id": 1
            }
          }
        }
      }
    }
  }
});
