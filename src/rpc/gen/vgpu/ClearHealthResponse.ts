// Original file: proto/health.proto


export interface ClearHealthResponse {
}

export interface ClearHealthResponse__Output {
}
