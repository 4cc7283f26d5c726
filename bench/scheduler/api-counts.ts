/** What an API server has answered and sent since its start, from its metrics. */
export interface ApiCounts {
  /** Requests by what they do, such as `POST pods/binding`. */
  readonly requests: ReadonlyMap<string, number>;
  /** Events sent to watches, by kind. */
  readonly events: ReadonlyMap<string, number>;
  /** Bytes of these events as they were encoded for each watch, by kind. */
  readonly eventBytes: ReadonlyMap<string, number>;
}

/** Reads the text of `/metrics` of kube-apiserver. Long requests (watches) are counted when they end. */
export function readApiCounts(text: string): ApiCounts {
  const requests = new Map<string, number>();
  const events = new Map<string, number>();
  const eventBytes = new Map<string, number>();
  const add = (to: Map<string, number>, name: string, value: number): void => {
    to.set(name, (to.get(name) ?? 0) + value);
  };
  for (const [, family = '', labels = '', value = ''] of text.matchAll(
    /^(apiserver_request_total|apiserver_watch_events_total|apiserver_watch_events_sizes_sum)\{([^}]*)\} (\S+)$/gm,
  )) {
    const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
    // The family of events names a kind until Kubernetes 1.33, and a resource from then on.
    const kind = label('kind') || label('resource');
    if (family === 'apiserver_watch_events_total') add(events, kind, Number(value));
    else if (family === 'apiserver_watch_events_sizes_sum') add(eventBytes, kind, Number(value));
    else {
      const resource = [label('resource'), label('subresource')].filter((part) => part !== '').join('/');
      add(requests, `${label('verb')} ${resource}`, Number(value));
    }
  }
  return { requests, events, eventBytes };
}

/** What was counted between two readings. */
export function countsBetween(before: ApiCounts, after: ApiCounts): ApiCounts {
  const grown = (from: ReadonlyMap<string, number>, to: ReadonlyMap<string, number>): ReadonlyMap<string, number> =>
    new Map([...to].map(([name, value]) => [name, value - (from.get(name) ?? 0)] as const).filter(([, n]) => n > 0));
  return {
    requests: grown(before.requests, after.requests),
    events: grown(before.events, after.events),
    eventBytes: grown(before.eventBytes, after.eventBytes),
  };
}
