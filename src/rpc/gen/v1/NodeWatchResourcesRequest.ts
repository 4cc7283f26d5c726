// Original file: proto/dra-health-v1.proto


export interface NodeWatchResourcesRequest {
}

export interface NodeWatchResourcesRequest__Output {
}
