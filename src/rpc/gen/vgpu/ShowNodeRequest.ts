// Original file: proto/node.proto


export interface ShowNodeRequest {
}

export interface ShowNodeRequest__Output {
}
