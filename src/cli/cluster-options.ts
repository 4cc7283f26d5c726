import { Option } from 'commander';

/** `--kubeconfig` of every command that needs a cluster for a person; with `--context`, a `ClusterAccess`. */
export function kubeconfigOption(): Option {
  return new Option('--kubeconfig <file>', 'access to the API server; default: the same as kubectl');
}

export function contextOption(): Option {
  return new Option('--context <name>', 'context of the kubeconfig; default: the current one');
}
