import { podSubject } from '../../kube/events.js';
import type { NodeKube } from '../api-server/index.js';
import type { Evictor, SliceNotices } from './ports.js';

/** Writes events for the pods of containers; without an API server only to the log. */
export function podNotices(apiServer: NodeKube | null): SliceNotices {
  return {
    note({ podUid, namespace, pod, container }, note) {
      if (apiServer === null || podUid === '' || pod === '') return;
      const uid = apiServer.pods.get(podUid)?.objectUid ?? podUid;
      apiServer.events.record(podSubject({ namespace, name: pod, uid }, container), note);
    },
  };
}

/** Evicts through the API server; without one it only logs. */
export function podEvictor(apiServer: NodeKube | null): Evictor {
  return {
    evict({ podUid }) {
      const pod = apiServer?.pods.get(podUid) ?? null;
      if (pod !== null) apiServer?.evict(pod);
    },
  };
}
