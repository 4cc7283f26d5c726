// Original file: proto/node.proto


export interface NodeGraph {
  'graph'?: (string);
}

export interface NodeGraph__Output {
  'graph': (string);
}
