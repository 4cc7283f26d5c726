// Original file: proto/pluginregistration-v1.proto

export const declarations = (): object => ({
  "nested": {
    "pluginregistration": {
      "nested": {
        "Registration": {
          "methods": {
            "GetInfo": {
              "requestType": "InfoRequest",
              "responseType": "PluginInfo"
            },
            "NotifyRegistrationStatus": {
              "requestType": "RegistrationStatus",
              "responseType": "RegistrationStatusResponse"
            }
          }
        },
        "InfoRequest": {
          "fields": {}
        },
        "PluginInfo": {
          "fields": {
            "type": {
              "type": "string",
              "id": 1
            },
            "name": {
              "type": "string",
              "id": 2
            },
            "endpoint": {
              "type": "string",
              "id": 3
            },
            "supported_versions": {
              "rule": "repeated",
              "type": "string",
              "id": 4
            }
          }
        },
        "RegistrationStatus": {
          "fields": {
            "plugin_registered": {
              "type": "bool",
              "id": 1
            },
            "error": {
              "type": "string",
              "id": 2
            }
          }
        },
        "RegistrationStatusResponse": {
          "fields": {}
        }
      }
    }
  }
});
