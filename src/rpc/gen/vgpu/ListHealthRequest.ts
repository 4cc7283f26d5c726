// Original file: proto/health.proto


export interface ListHealthRequest {
}

export interface ListHealthRequest__Output {
}
