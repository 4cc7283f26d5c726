// Original file: proto/dra-health-v1alpha1.proto


export interface NodeWatchResourcesRequest {
}

export interface NodeWatchResourcesRequest__Output {
}
