// Original file: proto/limits.proto


export interface ListLimitsRequest {
}

export interface ListLimitsRequest__Output {
}
