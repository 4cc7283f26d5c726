// Original file: proto/podresources-v1.proto

export const declarations = (): object => ({
  "nested": {
    "v1": {
      "nested": {
        "PodResourcesLister": {
          "methods": {
            "List": {
              "requestType": "ListPodResourcesRequest",
              "responseType": "ListPodResourcesResponse"
            }
          }
        },
        "ListPodResourcesRequest": {
          "fields": {}
        },
        "ListPodResourcesResponse": {
          "fields": {
            "pod_resources": {
              "rule": "repeated",
              "type": "PodResources",
              "id": 1
            }
          }
        },
        "PodResources": {
          "fields": {
            "name": {
              "type": "string",
              "id": 1
            },
            "namespace": {
              "type": "string",
              "id": 2
            },
            "containers": {
              "rule": "repeated",
              "type": "ContainerResources",
              "id": 3
            }
          }
        },
        "ContainerResources": {
          "fields": {
            "name": {
              "type": "string",
              "id": 1
            },
            "devices": {
              "rule": "repeated",
              "type": "ContainerDevices",
              "id": 2
            }
          }
        },
        "ContainerDevices": {
          "fields": {
            "resource_name": {
              "type": "string",
              "id": 1
            },
            "device_ids": {
              "rule": "repeated",
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
        }
      }
    }
  }
});
