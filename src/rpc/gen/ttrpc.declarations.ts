// Original file: proto/ttrpc.proto

export const declarations = (): object => ({
  "nested": {
    "ttrpc": {
      "nested": {
        "Request": {
          "fields": {
            "service": {
              "type": "string",
              "id": 1
            },
            "method": {
              "type": "string",
              "id": 2
            },
            "payload": {
              "type": "bytes",
              "id": 3
            },
            "timeout_nano": {
              "type": "int64",
              "id": 4
            },
            "metadata": {
              "rule": "repeated",
              "type": "KeyValue",
              "id": 5
            }
          }
        },
        "Response": {
          "fields": {
            "status": {
              "type": "Status",
              "id": 1
            },
            "payload": {
              "type": "bytes",
              "id": 2
            }
          }
        },
        "Status": {
          "fields": {
            "code": {
              "type": "int32",
              "id": 1
            },
            "message": {
              "type": "string",
              "id": 2
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
        }
      }
    }
  }
});
