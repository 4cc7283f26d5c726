// Original file: proto/display.proto


export interface Empty {
}

export interface Empty__Output {
}
