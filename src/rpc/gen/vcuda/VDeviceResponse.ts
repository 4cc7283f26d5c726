// Original file: proto/vcuda.proto


export interface VDeviceResponse {
}

export interface VDeviceResponse__Output {
}
