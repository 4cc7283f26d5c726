// Original file: proto/health.proto

export const declarations = (): object => ({
  "nested": {
    "vgpu": {
      "nested": {
        "Health": {
          "methods": {
            "List": {
              "requestType": "ListHealthRequest",
              "responseType": "ListHealthResponse"
            },
            "Clear": {
              "requestType": "ClearHealthRequest",
              "responseType": "ClearHealthResponse"
            }
          }
        },
        "ListHealthRequest": {
          "fields": {}
        },
        "ListHealthResponse": {
          "fields": {
            "gpus": {
              "rule": "repeated",
              "type": "GpuHealth",
              "id": 1
            }
          }
        },
        "GpuHealth": {
          "fields": {
            "index": {
              "type": "uint32",
              "id": 1
            },
            "uuid": {
              "type": "string",
              "id": 2
            },
            "status": {
              "type": "string",
              "id": 3
            },
            "reason": {
              "type": "string",
              "id": 4
            },
            "since_ms": {
              "type": "uint64",
              "id": 5
            },
            "until_ms": {
              "type": "uint64",
              "id": 6
            },
            "changes": {
              "rule": "repeated",
              "type": "HealthChange",
              "id": 7
            }
          }
        },
        "HealthChange": {
          "fields": {
            "at_ms": {
              "type": "uint64",
              "id": 1
            },
            "status": {
              "type": "string",
              "id": 2
            },
            "reason": {
              "type": "string",
              "id": 3
            }
          }
        },
        "ClearHealthRequest": {
          "fields": {
            "uuid": {
              "type": "string",
              "id": 1
            }
          }
        },
        "ClearHealthResponse": {
          "fields": {}
        }
      }
    }
  }
});
