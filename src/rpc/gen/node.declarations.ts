// Original file: proto/node.proto

export const declarations = (): object => ({
  "nested": {
    "vgpu": {
      "nested": {
        "Node": {
          "methods": {
            "Show": {
              "requestType": "ShowNodeRequest",
              "responseType": "NodeDocument"
            },
            "Events": {
              "requestType": "NodeEventsRequest",
              "responseType": "NodeDocument"
            },
            "Graph": {
              "requestType": "ShowNodeRequest",
              "responseType": "NodeGraph"
            },
            "Processes": {
              "requestType": "NodeProcessesRequest",
              "responseType": "NodeDocument"
            }
          }
        },
        "ShowNodeRequest": {
          "fields": {}
        },
        "NodeEventsRequest": {
          "fields": {
            "after": {
              "type": "uint64",
              "id": 1
            }
          }
        },
        "NodeDocument": {
          "fields": {
            "json": {
              "type": "string",
              "id": 1
            }
          }
        },
        "NodeGraph": {
          "fields": {
            "graph": {
              "type": "string",
              "id": 1
            }
          }
        },
        "NodeProcessesRequest": {
          "fields": {
            "allocation": {
              "type": "string",
              "id": 1
            }
          }
        }
      }
    }
  }
});
