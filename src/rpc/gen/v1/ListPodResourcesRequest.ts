// Original file: proto/podresources-v1.proto


export interface ListPodResourcesRequest {
}

export interface ListPodResourcesRequest__Output {
}
