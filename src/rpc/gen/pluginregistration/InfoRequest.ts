// Original file: proto/pluginregistration-v1.proto


export interface InfoRequest {
}

export interface InfoRequest__Output {
}
