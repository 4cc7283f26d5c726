/** Longer lines are cut here, and rejected by the reader. */
const MAX_LINE_BYTES = (1 << 20) + 4096;

/** The lines of a UTF-8 stream. A long line is cut, so that it does not fill the memory. */
export async function* linesOf(stream: AsyncIterable<Uint8Array | string>): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let length = 0;
  const take = (part: Uint8Array): void => {
    if (length < MAX_LINE_BYTES) parts.push(part.subarray(0, MAX_LINE_BYTES - length));
    length += part.length;
  };
  const line = (): string => {
    const text = Buffer.concat(parts).toString('utf8');
    parts = [];
    length = 0;
    return text.endsWith('\r') ? text.slice(0, -1) : text;
  };
  for await (const chunk of stream) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    let from = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      take(bytes.subarray(from, end));
      yield line();
      from = end + 1;
    }
    take(bytes.subarray(from));
  }
  if (length > 0) yield line();
}
