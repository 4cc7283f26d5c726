// Original file: proto/node.proto


export interface NodeDocument {
  'json'?: (string);
}

export interface NodeDocument__Output {
  'json': (string);
}
