// Original file: proto/vcuda.proto

export const declarations = (): object => ({
  "nested": {
    "vcuda": {
      "nested": {
        "VCUDAService": {
          "methods": {
            "RegisterVDevice": {
              "requestType": "VDeviceRequest",
              "responseType": "VDeviceResponse"
            }
          }
        },
        "VDeviceRequest": {
          "fields": {
            "bus_id": {
              "type": "string",
              "id": 1
            },
            "pod_uid": {
              "type": "string",
              "id": 2
            },
            "container_name": {
              "type": "string",
              "id": 3
            },
            "container_id": {
              "type": "string",
              "id": 4
            }
          }
        },
        "VDeviceResponse": {
          "fields": {}
        }
      }
    }
  }
});
