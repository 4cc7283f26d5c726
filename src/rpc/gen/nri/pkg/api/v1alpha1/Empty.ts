// Original file: proto/nri-v1alpha1.proto


export interface Empty {
}

export interface Empty__Output {
}
