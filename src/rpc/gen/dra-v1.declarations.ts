// Original file: proto/dra-v1.proto

export const declarations = (): object => ({
  "nested": {
    "k8s": {
      "nested": {
        "io": {
          "nested": {
            "kubelet": {
              "nested": {
                "pkg": {
                  "nested": {
                    "apis": {
                      "nested": {
                        "dra": {
                          "nested": {
                            "v1": {
                              "nested": {
                                "DRAPlugin": {
                                  "methods": {
                                    "NodePrepareResources": {
                                      "requestType": "NodePrepareResourcesRequest",
                                      "responseType": "NodePrepareResourcesResponse"
                                    },
                                    "NodeUnprepareResources": {
                                      "requestType": "NodeUnprepareResourcesRequest",
                                      "responseType": "NodeUnprepareResourcesResponse"
                                    }
                                  }
                                },
                                "Claim": {
                                  "fields": {
                                    "namespace": {
                                      "type": "string",
                                      "id": 1
                                    },
                                    "uid": {
                                      "type": "string",
                                      "id": 2
                                    },
                                    "name": {
                                      "type": "string",
                                      "id": 3
                                    }
                                  }
                                },
                                "NodePrepareResourcesRequest": {
                                  "fields": {
                                    "claims": {
                                      "rule": "repeated",
                                      "type": "Claim",
                                      "id": 1
                                    }
                                  }
                                },
                                "NodePrepareResourcesResponse": {
                                  "fields": {
                                    "claims": {
                                      "keyType": "string",
                                      "type": "NodePrepareResourceResponse",
                                      "id": 1
                                    }
                                  }
                                },
                                "NodePrepareResourceResponse": {
                                  "fields": {
                                    "devices": {
                                      "rule": "repeated",
                                      "type": "Device",
                                      "id": 1
                                    },
                                    "error": {
                                      "type": "string",
                                      "id": 2
                                    }
                                  }
                                },
                                "Device": {
                                  "oneofs": {
                                    "_share_id": {
                                      "oneof": [
                                        "share_id"
                                      ]
                                    }
                                  },
                                  "fields": {
                                    "request_names": {
                                      "rule": "repeated",
                                      "type": "string",
                                      "id": 1
                                    },
                                    "pool_name": {
                                      "type": "string",
                                      "id": 2
                                    },
                                    "device_name": {
                                      "type": "string",
                                      "id": 3
                                    },
                                    "cdi_device_ids": {
                                      "rule": "repeated",
                                      "type": "string",
                                      "id": 4
                                    },
                                    "share_id": {
                                      "type": "string",
                                      "id": 5,
                                      "options": {
                                        "proto3_optional": true
                                      }
                                    }
                                  }
                                },
                                "NodeUnprepareResourcesRequest": {
                                  "fields": {
                                    "claims": {
                                      "rule": "repeated",
                                      "type": "Claim",
                                      "id": 1
                                    }
                                  }
                                },
                                "NodeUnprepareResourcesResponse": {
                                  "fields": {
                                    "claims": {
                                      "keyType": "string",
                                      "type": "NodeUnprepareResourceResponse",
                                      "id": 1
                                    }
                                  }
                                },
                                "NodeUnprepareResourceResponse": {
                                  "fields": {
                                    "error": {
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
            }
          }
        }
      }
    }
  }
});
