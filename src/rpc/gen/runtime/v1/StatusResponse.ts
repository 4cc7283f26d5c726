// Original file: proto/cri-v1.proto


export interface StatusResponse {
  'info'?: ({[key: string]: string});
}

export interface StatusResponse__Output {
  'info': ({[key: string]: string});
}
