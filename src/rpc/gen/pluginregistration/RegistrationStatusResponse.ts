// Original file: proto/pluginregistration-v1.proto


export interface RegistrationStatusResponse {
}

export interface RegistrationStatusResponse__Output {
}
